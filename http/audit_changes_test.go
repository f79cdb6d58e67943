package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// trailEntry is an expected entry of the trail. Empty ids and changes are not compared.
type trailEntry struct {
	action, resource, id string
	name, environment    any
	changes              map[string]any
}

// sameTrail checks that the trail has exactly these entries, after the four of every new tenant.
func sameTrail(t *testing.T, me *nodetest.Client, want ...trailEntry) {
	t.Helper()
	got := trail(me, "")[4:]
	if len(got) != len(want) {
		t.Fatalf("the trail has %d entries, want %d: %v", len(got), len(want), nodetest.Column(got, "action"))
	}
	ids := map[any]bool{}
	for i, entry := range got {
		checkEntry(t, entry, want[i])
		ids[entry["id"]] = true
	}
	nodetest.Same(t, "different ids", len(ids), len(got))
}

func checkEntry(t *testing.T, entry map[string]any, want trailEntry) {
	t.Helper()
	nodetest.Members(t, "an entry", entry, "id", "timestamp", "action", "resource", "environment", "changes", "userId",
		"userName", "actorType", "reason", "requestId", "version")
	if !recordedPattern.MatchString(entry["timestamp"].(string)) {
		t.Errorf("timestamp is %v", entry["timestamp"])
	}
	resource := entry["resource"].(map[string]any)
	nodetest.Members(t, "a resource", resource, "type", "id", "name")
	if want.id == "" {
		want.id = resource["id"].(string)
	}
	nodetest.Same(t, "an entry",
		[]any{entry["action"], resource["type"], resource["id"], resource["name"], entry["environment"]},
		[]any{want.action, want.resource, want.id, want.name, want.environment})
	if want.changes != nil {
		nodetest.Same(t, want.action+": changes", entry["changes"], want.changes)
	}
}

// The trail has every change, with the values before and after.
func TestAuditTrailHasEveryChange(t *testing.T) {
	nodetest.BothEngines(t, testAuditTrailHasEveryChange)
}

func testAuditTrailHasEveryChange(t *testing.T) {
	nodetest.Cases{
		"of a new tenant": func(t *testing.T, me *nodetest.Client) {
			list := trail(me, "")
			want := []trailEntry{
				{"tenant.created", "tenant", me.Tenant, "of a new tenant", nil, nil},
				{"tenant.member_added", "member", me.UserID, me.Email, nil, map[string]any{"role": change(nil, "admin")}},
				{"tenant.environment_added", "environment", "", "production", "production", map[string]any{"name": change(nil, "production")}},
				{"tenant.environment_added", "environment", "", "development", "development", map[string]any{"name": change(nil, "development")}},
			}
			if len(list) != len(want) {
				t.Fatalf("the trail has %v", nodetest.Column(list, "action"))
			}
			for i, entry := range list {
				checkEntry(t, entry, want[i])
			}
		},
		"of a tenant": func(t *testing.T, me *nodetest.Client) {
			tenant := "/api/v1/tenants/" + me.Tenant
			me.Call("PATCH", tenant, `{"name":"Acme"}`).Want(200)
			for range 2 { // the second changes nothing
				me.Call("PATCH", tenant, map[string]string{"primaryEmail": "ops@example.org", "contactName": "Olive"}).Want(200)
			}
			sameTrail(t, me,
				trailEntry{"tenant.updated", "tenant", me.Tenant, "Acme", nil, map[string]any{"name": change("of a tenant", "Acme")}},
				trailEntry{"tenant.updated", "tenant", me.Tenant, "Acme", nil, map[string]any{"primaryEmail": map[string]any{}, "contactName": map[string]any{}}})
		},
		"of a project": func(t *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("Shop")
			me.Call("PATCH", path, `{"name":"Web shop","color":"#112233"}`).Want(200)
			me.Call("DELETE", path, nil).Want(204)
			sameTrail(t, me,
				trailEntry{"project.created", "project", project, "Shop", nil, map[string]any{"name": change(nil, "Shop"), "color": change(nil, "#6b7280")}},
				trailEntry{"project.updated", "project", project, "Web shop", nil, map[string]any{"name": change("Shop", "Web shop"), "color": change("#6b7280", "#112233")}},
				trailEntry{"project.deleted", "project", project, "Web shop", nil, map[string]any{"name": change("Web shop", nil)}})
		},
		"of a flag": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"name": "Checkout"})
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"Till"}`).Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			sameTrail(t, me,
				trailEntry{"flag.created", "flag", "k", "Checkout", nil, map[string]any{"name": change(nil, "Checkout"), "type": change(nil, "boolean"), "defaultValue": change(nil, false)}},
				trailEntry{"flag.enabled", "flag", "k", "Checkout", "development", map[string]any{"enabled": change(false, true)}},
				trailEntry{"flag.updated", "flag", "k", "Till", nil, map[string]any{"name": change("Checkout", "Till")}},
				trailEntry{"flag.deleted", "flag", "k", "Till", nil, map[string]any{"name": change("Till", nil)}})
		},
		"of an environment": func(t *testing.T, me *nodetest.Client) {
			environments := "/api/v1/tenants/" + me.Tenant + "/environments"
			me.Call("POST", environments, `{"environment":"staging"}`).Want(201)
			me.Call("DELETE", environments+"/staging", nil).Want(204)
			sameTrail(t, me,
				trailEntry{"tenant.environment_added", "environment", "", "staging", "staging", map[string]any{"name": change(nil, "staging")}},
				trailEntry{"tenant.environment_deleted", "environment", "", "staging", "staging", map[string]any{"name": change("staging", nil)}})
		},
		"of the order and colors of environments": func(t *testing.T, me *nodetest.Client) {
			body := `{"environments":[{"name":"development","color":"#112233"},{"name":"production","color":"#e03131"}]}`
			for range 2 { // the second changes nothing
				me.Call("PUT", "/api/v1/tenants/"+me.Tenant+"/environments/settings", body, "X-Change-Reason", "safer").Want(200)
			}
			color := events.EnvironmentRef{Name: "development"}.DefaultColor()
			sameTrail(t, me, trailEntry{"tenant.environments_arranged", "tenant", me.Tenant, "of the order and colors of environments", nil, map[string]any{
				"environments.development.color": change(color, "#112233"),
				"environments.order":             change([]string{"production", "development"}, []string{"development", "production"}),
			}})
			list := trail(me, "")
			nodetest.Same(t, "reason", list[len(list)-1]["reason"], "safer")
		},
		"of a member": func(t *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			pending := me.Call("POST", usersPath(me), map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["userId"].(string)
			nodetest.Same(t, "the name of a pending member",
				me.Call("GET", auditPath+"?limit=1", nil).Want(200).List()[0]["resource"].(map[string]any)["name"], email)
			member := me.Service.SignUp(email)
			me.Call("PATCH", usersPath(me, member.UserID), `{"role":"developer"}`).Want(200)
			me.Call("DELETE", usersPath(me, member.UserID), nil).Want(204)
			sameTrail(t, me,
				trailEntry{"tenant.member_invited", "member", pending, email, nil, map[string]any{"role": change(nil, "viewer"), "pending": change(nil, true)}},
				trailEntry{"tenant.member_joined", "member", member.UserID, email, nil, map[string]any{"userId": change(pending, member.UserID), "pending": change(true, false)}},
				trailEntry{"tenant.member_role_changed", "member", member.UserID, email, nil, map[string]any{"role": change("viewer", "developer")}},
				trailEntry{"tenant.member_removed", "member", member.UserID, email, nil, map[string]any{"role": change("developer", nil)}})
		},
		"of an evaluation key": func(t *testing.T, me *nodetest.Client) {
			key, _ := createKey(me, "browser", map[string]any{"origins": []any{"https://a.example"}})
			id := key["id"].(string)
			me.Call("PATCH", keysPath+"/"+id, `{"name":"Store","origins":[]}`).Want(200)
			me.Call("POST", keysPath+"/"+id+"/rotate", nil).Want(200)
			me.Call("DELETE", keysPath+"/"+id, nil).Want(204)
			sameTrail(t, me,
				trailEntry{"tenant.evaluation_key_added", "evaluation_key", id, "Shop", "production", map[string]any{
					"name": change(nil, "Shop"), "kind": change(nil, "browser"), "environment": change(nil, "production"),
					"origins": change(nil, []string{"https://a.example"}),
				}},
				trailEntry{"tenant.evaluation_key_changed", "evaluation_key", id, "Store", "production", map[string]any{
					"name": change("Shop", "Store"), "origins": change([]string{"https://a.example"}, []string{}),
				}},
				trailEntry{"tenant.evaluation_key_rotated", "evaluation_key", id, "Store", "production", nil},
				trailEntry{"tenant.evaluation_key_removed", "evaluation_key", id, "Store", "production", map[string]any{"name": change("Store", nil)}})
		},
		"of an OAuth client, without the hash of its secret": func(t *testing.T, me *nodetest.Client) {
			client, _ := me.OAuthClient("CI", "flags:read")
			me.Call("POST", "/api/v1/oauth/clients/"+client+"/rotate", nil).Want(200)
			me.Call("DELETE", "/api/v1/oauth/clients/"+client, nil).Want(204)
			sameTrail(t, me,
				trailEntry{"tenant.oauth_client_created", "oauth_client", client, "CI", nil, map[string]any{"name": change(nil, "CI"), "scopes": change(nil, []string{"flags:read"})}},
				trailEntry{"tenant.oauth_secret_rotated", "oauth_client", client, "CI", nil, nil},
				trailEntry{"tenant.oauth_client_deleted", "oauth_client", client, "CI", nil, map[string]any{"name": change("CI", nil)}})
			if text := fmt.Sprint(trail(me, "")); strings.Contains(text, "ecretHash") {
				t.Error("the trail shows the hash of a secret")
			}
		},
		"of a subscription": func(t *testing.T, me *nodetest.Client) {
			ends := time.Date(2999, 1, 2, 3, 4, 5, 0, time.UTC)
			me.Subscribe(
				events.Subscription{ID: "sub_" + me.Tenant, Plan: events.StandardPlan, Status: events.Active, PeriodEnd: ends},
			)
			sameTrail(t, me, trailEntry{"tenant.subscription_changed", "subscription", me.Tenant, "of a subscription", nil, map[string]any{
				"id":               change(nil, "sub_"+me.Tenant),
				"plan":             change("free", "standard"),
				"status":           change("none", "active"),
				"currentPeriodEnd": change(nil, "2999-01-02T03:04:05.000Z"),
			}})
		},
	}.Run(t)
}
