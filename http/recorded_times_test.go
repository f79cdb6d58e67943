package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// timesOfFacts are the members of answers that show when a fact was recorded.
var timesOfFacts = map[string]bool{"createdAt": true, "updatedAt": true, "timestamp": true, "since": true}

// recordedTimes collects the times at which the store recorded its facts.
type recordedTimes struct {
	store events.Store
	after events.Position
	times map[string]bool
}

// read adds the facts that were appended since the last call.
func (r *recordedTimes) read(t rapid.TB) {
	for page, err := range r.store.Subscribe(context.Background(), r.after) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			r.times[e.At.UTC().Format(events.RecordedFormat)] = true
		}
		if r.after = page.Next; page.Live {
			return
		}
	}
}

// check reports times of facts in a JSON value that the store did not record any fact at.
func (r *recordedTimes) check(t rapid.TB, call string, value any) (checked int) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			checked += r.check(t, call, v)
		}
	case map[string]any:
		for name, v := range value {
			if at, isText := v.(string); isText && timesOfFacts[name] {
				checked++
				if !r.times[at] {
					t.Errorf("%s: %s is %q, at which no fact was recorded", call, name, at)
				}
			}
			checked += r.check(t, call, v)
		}
	}
	return checked
}

// Every time of a fact, in every answer, is the time at which the store recorded it: sent as at, it includes the fact.
func TestTimesOfFactsAreThoseOfTheStore(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), node.Config{
		EventStoreURL: nodetest.OwnEngineURL(t), Environment: "development", SuperUsers: []string{"root@example.com"},
	}, nodetest.Log(t))
	root := s.SignUp("root@example.com")
	root.Call("POST", invitationsPath, map[string]string{"email": "invited@example.com", "role": "viewer"}).Want(201)
	e := &evolving{types: map[string]string{}, me: s.SignUp("tester@example.com")}
	e.me.OAuthClient("machine", "flags:read")
	project, _ := e.me.CreateProject("first")
	e.projects, e.environmentsSince = []string{project}, time.Now()
	e.times = []string{e.environmentsSince.UTC().Format(time.RFC3339Nano)}
	recorded := &recordedTimes{store: s.Store(), times: map[string]bool{}}
	counts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		me, root := *e.me, *root
		me.Service = e.me.Service.In(nodetest.Drawn{TB: t, Property: rt})
		root.Service = me.Service
		for range rapid.IntRange(2, 6).Draw(rt, "changes") {
			a := e.change(rt, &me)
			recorded.read(rt)
			if a.Status < 300 && len(a.Body) > 0 {
				counts["changes"] += recorded.check(rt, a.Call, a.JSON())
			}
		}
		key := rapid.SampledFrom(someKeys).Draw(rt, "key")
		paths := []string{
			"/api/v1/flags", nodetest.FlagPath(key), nodetest.FlagPath(key, "/versions"), nodetest.FlagPath(key, "/versions/1"), nodetest.FlagPath(key, "/history"),
			"/api/v1/flags?" + atNow(), "/api/v1/projects", "/api/v1/projects?" + atNow(), nodetest.ProjectFlagsPath(project), "/api/v1/tenants",
			"/api/v1/tenants/" + me.Tenant, "/api/v1/tenants/" + me.Tenant + "/users", "/api/v1/tenants/" + me.Tenant + "/users?" + atNow(), "/api/v1/oauth/clients", "/api/v1/audit",
		}
		for _, path := range paths {
			if a := me.Call("GET", path, nil); a.Status == 200 {
				recorded.read(rt)
				counts[path] += recorded.check(rt, a.Call, a.JSON())
			}
		}
		for line := range bytes.Lines(me.Call("GET", "/api/v1/audit/export", nil).Want(200).Body) {
			var entry any
			if err := json.Unmarshal(line, &entry); err != nil {
				rt.Fatal(err)
			}
			counts["export"] += recorded.check(rt, "GET /api/v1/audit/export", entry)
		}
		for _, path := range []string{usersOfPlatform, "/api/v1/admin/tenants", invitationsPath} {
			counts[path] += recorded.check(rt, path, root.Call("GET", path, nil).Want(200).JSON())
		}
		checkAt(rt, &me, key)
	})
	for _, what := range []string{"changes", "export", "/api/v1/flags", "/api/v1/projects", "/api/v1/tenants", "/api/v1/oauth/clients", usersOfPlatform, invitationsPath} {
		if counts[what] == 0 {
			t.Errorf("no time was checked of %s", what)
		}
	}
}

// checkAt asks for what there was at the times that answers show.
func checkAt(t rapid.TB, me *nodetest.Client, key string) {
	at := func(time any) string { return "at=" + url.QueryEscape(fmt.Sprint(time)) }
	if a := me.Call("GET", nodetest.FlagPath(key, "/history"), nil); a.Status == 200 {
		newest := map[any]any{}
		for _, entry := range a.List() {
			if _, known := newest[entry["timestamp"]]; !known { // facts of one append have the same time
				newest[entry["timestamp"]] = entry["version"]
			}
			then := me.Call("GET", nodetest.FlagPath(key, "?"+at(entry["timestamp"])), nil)
			if then.Status == 404 && entry["action"] == "deleted" {
				continue
			}
			if got := then.Want(200).Object(); got["version"] != newest[entry["timestamp"]] || got["updatedAt"] != entry["timestamp"] {
				t.Errorf("at %v, %s has version %v, updated at %v; the history has %v", entry["timestamp"], key, got["version"], got["updatedAt"], newest[entry["timestamp"]])
			}
		}
	}
	for _, p := range me.Call("GET", "/api/v1/projects", nil).Want(200).List() {
		for _, name := range []string{"createdAt", "updatedAt"} {
			then := me.Call("GET", "/api/v1/projects/"+p["id"].(string)+"?"+at(p[name]), nil).Want(200).Object()
			if then["updatedAt"] != p[name] {
				t.Errorf("at %v, the %s of a project, it was updated at %v", p[name], name, then["updatedAt"])
			}
		}
	}
	users := "/api/v1/tenants/" + me.Tenant + "/users"
	for _, m := range me.Call("GET", users, nil).Want(200).List() {
		then := me.Call("GET", users+"?"+at(m["createdAt"]), nil).Want(200)
		if !strings.Contains(string(then.Body), m["userId"].(string)) {
			t.Errorf("at %v, at which a member was added, the list lacks them: %s", m["createdAt"], then.Body)
		}
	}
}
