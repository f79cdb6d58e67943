package http_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/cmd/flagledger/nodetest"
)

// atNow returns the current time for the parameter at.
func atNow() string { return "at=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano)) }

// The parameter at must be a time and not in the future. Before anything existed, lists are empty and things are not
// found.
func TestTimesThatAreAskedFor(t *testing.T) { nodetest.BothEngines(t, testTimesThatAreAskedFor) }

func testTimesThatAreAskedFor(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	tenant := "/api/v1/tenants/" + me.Tenant
	project := me.Call("POST", "/api/v1/projects", map[string]any{"name": "P"}).Want(201).Object()["id"].(string)
	me.Call("POST", "/api/v1/flags/projects/"+project+"/flags", map[string]any{"key": "k", "type": "boolean"}).Want(201)
	for _, path := range []string{
		"/api/v1/flags", "/api/v1/flags/projects/" + project + "/flags", "/api/v1/projects", "/api/v1/projects/" + project, tenant + "/users", tenant + "/environments",
	} {
		for _, at := range []string{"yesterday", "", "2026-03-14", "2026-03-14T15:09:26,5Z", "2026-03-14T15:09:26+02:00", "9999-12-31T23:59:59Z", url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))} {
			me.Call("GET", path+"?at="+at, nil).Refused(422, "at")
		}
		today, then := ask(me, request{path: path}, ""), ask(me, request{path: path}, atNow())
		if today.status != 200 || !cmp.Equal(today.body, then.body) {
			t.Errorf("%s is %v now, and %v with the time of now", path, today.body, then.body)
		}
		for _, at := range []string{"2001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"} {
			before := me.Call("GET", path+"?at="+at, nil)
			if strings.Contains(path, "/flags") || strings.Contains(path, project) {
				before.Refused(404)
				continue
			}
			nodetest.Same(t, "what "+path+" was before there was anything", before.Want(200).JSON(), []any{})
		}
	}
	me.Call("GET", "/api/v1/flags?at=x&limit=0&type=y", nil).Refused(422, "at", "limit", "type")
}

// An environment's name means the environment that had it at that time: a new one with the same name starts with all
// flags off.
func TestEnvironmentsOfThePast(t *testing.T) { nodetest.BothEngines(t, testEnvironmentsOfThePast) }

func testEnvironmentsOfThePast(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	enabled := func(at string) *nodetest.Answer {
		return me.Call("GET", "/api/v1/flags?"+at, nil, "X-Environment", "qa")
	}
	shown := func(at string, want bool) {
		t.Helper()
		nodetest.Same(t, "enabled at "+at, enabled(at).Want(200).List()[0]["enabled"], want)
	}
	environments := "/api/v1/tenants/" + me.Tenant + "/environments"
	times := []string{atNow()}
	for range 2 {
		me.Call("POST", environments, map[string]any{"environment": "qa"}).Want(201)
		times = append(times, atNow())
		me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "qa").Want(200)
		times = append(times, atNow())
		me.Call("DELETE", environments+"/qa", nil).Want(204)
		times = append(times, atNow())
	}
	for i, at := range times {
		switch i % 3 {
		case 0:
			enabled(at).Refused(404)
		case 1:
			shown(at, false)
		case 2:
			shown(at, true)
		}
	}
	enabled("").Refused(404)
	enabled("q=k").Refused(404)
}

// A former pending member is shown with the current name of the person that they became.
func TestPendingMembersOfThePast(t *testing.T) { nodetest.BothEngines(t, testPendingMembersOfThePast) }

func testPendingMembersOfThePast(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	users := "/api/v1/tenants/" + me.Tenant + "/users"
	email := nodetest.Address()
	pending := me.Call("POST", users, map[string]any{"email": email, "role": "viewer"}).Want(201).Object()["userId"]
	then := atNow()
	joined := me.Service.SignUp(email)
	me.Call("PATCH", users+"/"+joined.UserID, map[string]any{"role": "developer"}).Want(200)
	list := me.Call("GET", users+"?"+then, nil).Want(200).List()
	i := slices.IndexFunc(list, func(m map[string]any) bool { return m["userId"] == pending })
	if i < 0 {
		t.Fatalf("the pending member is not among %v", list)
	}
	for name, want := range map[string]any{"pending": true, "role": "viewer", "email": email, "lastAccessedAt": nil} {
		nodetest.Same(t, name, list[i][name], want)
	}
	if list[i]["displayName"] == "erased user" {
		t.Error("they are shown as erased")
	}
}
