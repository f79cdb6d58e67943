package http_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// One response reports all unknown members, wrong types and broken rules of a body.
func TestAllThatIsWrongWithABodyIsToldAtOnce(t *testing.T) {
	nodetest.Cases{
		"of a flag": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", "/api/v1/flags", `{"key":"bad key!","type":"boolean","defaultValue":"x","description":5,"bogus":1}`).
				Refused(422, "key", "defaultValue", "description", "bogus")
			me.CreateFlag("k", nil)
			me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean","bogus":1}`).Refused(422, "bogus")
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"","tags":{},"enabled":true,"bogus":1}`).
				Refused(422, "name", "tags", "enabled", "bogus")
			me.Call("POST", nodetest.FlagPath("k", "/variations"), `{"name":"","weight":"1","bogus":1}`).
				Refused(422, "name", "value", "weight", "bogus")
			me.SetRules("k", `{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["("]}],"serve":{"value":1},"bogus":1},5]}`).
				Refused(422, "rules[0].conditions[0].values[0]", "rules[0].serve.value", "rules[0].bogus", "rules[1]")
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
		},
		"of what is not there it is not told": func(_ *testing.T, me *nodetest.Client) {
			me.Call("PATCH", nodetest.FlagPath("none"), `{"name":"","bogus":1}`).Refused(404)
		},
		"of a tenant and what is in it": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", "/api/v1/projects", `{"color":"red","description":[],"bogus":1}`).
				Refused(422, "name", "color", "description", "bogus")
			me.Call("POST", "/api/v1/tenants", `{"name":"","primaryEmail":"x","isSandbox":"yes","bogus":1}`).
				Refused(422, "name", "primaryEmail", "isSandbox", "bogus")
			me.Call("PATCH", "/api/v1/tenants/"+me.Tenant, `{"name":"","primaryEmail":"x","contactName":5,"bogus":1}`).
				Refused(422, "name", "primaryEmail", "contactName", "bogus")
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"UPPER","bogus":1}`).
				Refused(422, "environment", "bogus")
			me.Call("POST", usersPath(me), `{"email":"x","role":"owner","bogus":1}`).Refused(422, "email", "role", "bogus")
			me.Call("POST", "/api/v1/oauth/clients", `{"name":"","scopes":["flags:read","x",5],"bogus":1}`).
				Refused(422, "name", "scopes[1]", "scopes[2]", "bogus")
		},
		"of who signs up or in": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", "/api/v1/auth/signup", `{"email":"x","password":"short","displayName":5,"bogus":1}`).
				Refused(422, "email", "password", "displayName", "bogus")
			me.Call("POST", "/auth/signup", `{"email":"x","password":"short","bogus":1}`).
				Refused(422, "email", "password", "bogus")
			me.Call("POST", "/auth/signin", `{"email":5,"bogus":1}`).Refused(422, "email", "password", "bogus")
			me.Call("POST", "/api/v1/auth/signin/google", `{"idToken":5,"providerName":"github","bogus":1}`).
				Refused(422, "idToken", "providerName", "bogus")
			me.Call("POST", "/api/v1/auth/update-password", `{"newPassword":"short","bogus":1}`).
				Refused(422, "currentPassword", "newPassword", "bogus")
		},
	}.Run(t)
}

// A valid body with one unknown member changes nothing in any operation: it adds no fact and no keeping.
func TestARefusedBodyChangesNothing(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	me := s.SignUp("root@example.com")
	store := s.Store()
	db, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	project, _ := me.CreateProject("p")
	flag := me.CreateFlag("k", map[string]any{"projectId": project, "flag_variations": twoVariations})
	required := requiredInExamples(me)
	variations := nodetest.Column(asMaps(flag["variations"]), "id")
	member := me.Join("viewer").Stay()
	key, _ := createKey(me, "browser", nil)
	createSegment(me, "beta", "")
	paths := strings.NewReplacer("{keyId}", key["id"].(string), "{projectId}", project, "{flagKey}", "k", "{key}", "k", "{segmentKey}", "beta", "{variationId}",
		variations[0].(string), "{userId}", member.UserID)
	whole, operations := me.Document()
	for name, operation := range operations {
		content := object(object(object(operation["requestBody"])["content"])["application/json"])
		// which ignore what they do not know, or refuse people
		if content == nil || strings.HasPrefix(name, "POST /ofrep/") || strings.HasSuffix(name, "/webhook") ||
			name == "POST /v1/logs" || name == "POST /api/v1/usage" {
			continue
		}
		body := maps.Clone(object(sample(whole, content)))
		body["bogus"] = 1
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		head, err := store.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := kept(s, db)
		method, path, _ := strings.Cut(name, " ")
		ids := idsInExamples(s, project, flag)
		if strings.HasSuffix(name, "/prerequisites") {
			ids = idsInExamples(s, project, required)
		}
		request := me.Call(method, filled(me, paths.Replace(path)), ids.Replace(string(text))).
			Refused(422, "bogus").
			Header.Get("X-Request-ID")
		written := s.Written(store, head, func(e events.Recorded) bool {
			return e.RequestID == request || e.Actor.ID == me.UserID || strings.Contains(e.Stream, me.Tenant)
		})
		if len(written) > 0 {
			t.Errorf("%s has written %v", name, written)
		}
		nodetest.Same(t, "after "+name+" what is kept", kept(s, db), before)
	}
}

// kept returns all keepings, except visits of tenants.
func kept(s *nodetest.Service, db *pgx.Conn) (rows string) {
	s.T.Helper()
	for _, table := range []string{"people", "tenant_contacts", "passwords", "refresh_tokens", "signing_keys", "pending_members", "invitations", "mailed_tokens"} {
		var found string
		if err := db.QueryRow(s.T.Context(), fmt.Sprintf(`select coalesce(string_agg(t::text, E'\n' order by t::text), '') from keep.%s t`, table)).
			Scan(&found); err != nil {
			s.T.Fatal(err)
		}
		rows += table + "\n" + found + "\n"
	}
	return rows
}
