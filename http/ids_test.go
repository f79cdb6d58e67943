package http_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestIDsAreReadInAnyCase(t *testing.T) {
	nodetest.Cases{
		"in paths, headers, queries and bodies": func(t *testing.T, me *nodetest.Client) {
			up := strings.ToUpper
			project, projectPath := me.CreateProject("Web")
			me.CreateFlag("in-project", map[string]any{"projectId": up(project)})
			variation, _ := me.TwoVariations("k")
			member := me.Join("viewer").Stay()
			capital := *me
			capital.Tenant = up(me.Tenant)
			capital.Call("GET", "/api/v1/flags", nil).Want(200)
			capital.Call("GET", "/api/v1/tenants/"+me.Tenant, nil).Want(200)
			me.Call("GET", "/api/v1/tenants/"+up(me.Tenant), nil).Want(200).Shows(map[string]any{"id": me.Tenant})
			capital.Evaluate("k", `{"targetingKey":"u"}`).Want(200)
			capital.Call("POST", "/ofrep/v1/evaluate/flags/k", `{"context":{"targetingKey":"u"}}`).Want(200)
			me.Call("GET", strings.Replace(projectPath, project, up(project), 1), nil).
				Want(200).
				Shows(map[string]any{"id": project})
			nodetest.Same(t, "flags of the project", me.FlagKeys("?projectId="+up(project)), []any{"in-project"})
			me.Call("GET", nodetest.ProjectFlagsPath(up(project)), nil).Want(200)
			me.Call("GET", nodetest.ProjectFlagsPath(up(project), "/in-project"), nil).Want(200)
			me.SetFallthrough("k", `{"serve":{"rollout":[{"variationId":"`+up(variation)+`","weight":1}]}}`).Want(200)
			me.SetRules("k", `{"rules":[{"name":"r","conditions":[],"serve":{"variationId":"`+up(variation)+`"}}]}`).Want(200)
			rule := me.Rules("k").Want(200).Object()["rules"].([]any)[0].(map[string]any)["id"].(string)
			me.SetRules("k", `{"rules":[{"id":"`+up(rule)+`","name":"r","conditions":[],"serve":{"variationId":"`+variation+`"}}]}`).
				Want(200)
			nodetest.Same(t, "the rule", me.Rules("k").Object()["rules"].([]any)[0].(map[string]any)["id"], rule)
			me.Call("PATCH", nodetest.FlagPath("k", "/variations/", up(variation)), `{"name":"renamed"}`).Want(200)
			me.Call("PATCH", usersPath(me, up(member.UserID)), `{"role":"developer"}`).Want(200)
			me.Call("GET", "/api/v1/users/"+up(member.UserID)+"/product-tours/t", nil).Want(200)
			id := me.Call("POST", inboxPath+"/send", map[string]any{"userId": up(member.UserID), "tenantId": up(me.Tenant), "title": "t", "type": "t"}).Want(201).Object()["id"].(string)
			member.Call("GET", inboxPath+"/"+up(id), nil).Want(200)
			if len(me.History("k", "?userId="+up(me.UserID))) == 0 {
				t.Error("the history of a person in capitals is empty")
			}
			for _, query := range []string{"userId=" + up(me.UserID), "resourceType=project&resourceId=" + up(project), "resourceId=" + up(project)} {
				if len(me.Call("GET", "/api/v1/audit?"+query, nil).Want(200).List()) == 0 {
					t.Errorf("the trail with %s is empty", query)
				}
			}
			event := me.Call("GET", "/api/v1/audit?limit=1", nil).Want(200).List()[0]["id"].(string)
			me.Call("GET", "/api/v1/audit/proof?event="+up(event), nil).Want(200)
		},
		"a repeated call may write them otherwise": func(_ *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("Web")
			shouted := strings.Replace(path, project, strings.ToUpper(project), 1)
			key := uuid.NewString()
			first := keyed(me, key, "PATCH", path, `{"name":"Shop"}`).Want(200)
			replays(keyed(me, key, "PATCH", shouted, `{"name":"Shop"}`), first)
			replays(keyed(me, key, "PATCH", path+"/", `{"name":"Shop"}`), first)
			replays(keyed(me, key, "PATCH", "/"+path, `{"name":"Shop"}`), first)
			key = uuid.NewString()
			invited := keyed(me, key, "POST", usersPath(me), `{"email":"`+nodetest.Address()+`","role":"viewer"}`).Want(201)
			member := invited.Object()["userId"].(string)
			key = uuid.NewString()
			first = keyed(me, key, "DELETE", usersPath(me, member), nil).Want(204)
			replays(keyed(me, key, "DELETE", usersPath(me, strings.ToUpper(member)), nil), first)
			me.CreateFlag("a.b", nil)
			first = keyed(me, key, "POST", nodetest.FlagPath("a.b", "/enable"), nil).Want(200)
			replays(keyed(me, key, "POST", "/api/v1/flags/a%2Eb/enable", nil), first)
		},
		"of machines": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("Machine", "flags:read")
			token := me.Trade("grant_type", "client_credentials", "client_id", strings.ToUpper(id), "client_secret", secret).Want(200).Object()["access_token"].(string)
			me.WithToken(token).Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", strings.ToUpper(me.Tenant)).Want(200)
			key, _ := createKey(me, "server", nil)
			me.Call("POST", keysPath+"/"+strings.ToUpper(key["id"].(string))+"/rotate", nil).Want(200)
			me.Call("POST", "/api/v1/oauth/clients/"+strings.ToUpper(id)+"/rotate", nil).Want(200)
			me.Call("DELETE", "/api/v1/oauth/clients/"+strings.ToUpper(id), nil).Want(204)
		},
		"a person's id from Firebase keeps its case": func(t *testing.T, me *nodetest.Client) {
			person := *me
			person.UserID = strings.ToUpper(uuid.NewString())
			store := me.Service.Store()
			registered := events.Event{
				ID:       uuid.New(),
				Metadata: events.Metadata{Time: time.Now(), Actor: events.Actor{Kind: events.UserActor, ID: person.UserID}},
				Fact:     events.UserRegistered{ID: person.UserID, Provider: "custom"},
			}
			if _, err := store.Append(t.Context(), events.UserStream(person.UserID), 0, []events.Event{registered}); err != nil {
				t.Fatal(err)
			}
			created := events.FlagCreated{
				ID:           uuid.NewString(),
				Name:         "k",
				Type:         events.BooleanFlag,
				DefaultValue: []byte("false"),
				Salt:         "s",
			}
			if err := appendFact(&person, store, "k", 0, created); err != nil {
				t.Fatal(err)
			}
			query := "?userId=" + person.UserID
			me.Service.Eventually("the flag is there",
				func() bool { return me.Call("GET", nodetest.FlagPath("k"), nil).Status == 200 })
			me.Service.Eventually("the trail has it",
				func() bool { return len(me.Call("GET", "/api/v1/audit?resourceId=k", nil).Want(200).List()) == 1 })
			nodetest.Same(t, "history", len(me.History("k", query)), 1)
			nodetest.Same(t, "trail", len(me.Call("GET", "/api/v1/audit"+query, nil).Want(200).List()), 1)
			nodetest.Same(t, "export",
				strings.Count(string(me.Call("GET", "/api/v1/audit/export"+query, nil).Want(200).Body), "\n"), 1)
			nodetest.Same(t, "history in another case", len(me.History("k", "?userId="+strings.ToLower(person.UserID))), 0)
		},
		"a key of that form keeps its case": func(t *testing.T, me *nodetest.Client) {
			const key = "0198C5A0-D3C2-7E19-9A75-2B8F6C4D1E05"
			me.CreateFlag(key, nil)
			me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Shows(map[string]any{"key": key})
			me.Call("GET", nodetest.FlagPath(strings.ToLower(key)), nil).Refused(404)
			trail := me.Call("GET", "/api/v1/audit?resourceType=flag&resourceId="+url.QueryEscape(key), nil).Want(200).List()
			nodetest.Same(t, "entries", len(trail), 1)
		},
		"scopes may be divided by several blanks": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("Machine", "flags:read", "flags:evaluate")
			for _, scope := range []string{"flags:read  flags:evaluate", " flags:read flags:evaluate ", "flags:read flags:evaluate "} {
				me.Trade("grant_type", "client_credentials", "client_id", id, "client_secret", secret, "scope", scope).
					Want(200).
					Shows(map[string]any{"scope": "flags:read flags:evaluate"})
			}
		},
	}.Run(t)
}
