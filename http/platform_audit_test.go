package http_test

import (
	"encoding/base64"
	"net/url"
	"slices"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// The platform reads the trails of all tenants in one order, including deleted ones.
func TestThePlatformsTrail(t *testing.T) { nodetest.BothEngines(t, testThePlatformsTrail) }

func testThePlatformsTrail(t *testing.T) {
	const path = "/api/v1/admin/audit"
	platformCases{
		"it has the facts of all tenants and of the platform": func(t *testing.T, root *nodetest.Client) {
			owner := root.Service.SignUp(nodetest.Address())
			a, b := owner.NewTenant("a"), owner.NewTenant("b")
			a.CreateFlag("k", nil)
			b.CreateFlag("k", nil)
			want := append(
				nodetest.Column(trail(a, "?userId="+owner.UserID), "id"),
				nodetest.Column(trail(b, "?userId="+owner.UserID), "id")...)
			a.Call("DELETE", "/api/v1/tenants/"+a.Tenant, nil).Want(204)
			a.Call("GET", auditPath, nil).Refused(403)
			var got []map[string]any
			for next := path + "?limit=2&userId=" + owner.UserID; next != ""; {
				page := root.Call("GET", next, nil).Want(200)
				got, next = append(got, page.List()...), linked(page)
			}
			tenants := map[any]bool{}
			for _, e := range got {
				tenants[e["tenantId"]] = true
			}
			if !tenants[a.Tenant] || !tenants[b.Tenant] || !tenants[nil] {
				t.Errorf("the trail has the tenants %v", tenants)
			}
			for _, id := range want {
				if !slices.Contains(nodetest.Column(got, "id"), id) {
					t.Errorf("the fact %v is missing", id)
				}
			}
			deleted := root.Call("GET", path+"?limit=1&tenantId="+a.Tenant, nil).Want(200)
			nodetest.Same(t, "the last fact of the deleted tenant",
				[]any{deleted.List()[0]["action"], deleted.List()[0]["tenantId"]}, []any{"tenant.deleted", a.Tenant})
			nodetest.Same(t, "the one before", root.Call("GET", linked(deleted), nil).Want(200).List()[0]["action"],
				"flag.created")
			registered := root.Call("GET", path+"?resourceType=user&resourceId="+owner.UserID, nil).Want(200).List()
			nodetest.Same(
				t,
				"the person",
				[]any{
					registered[len(registered)-1]["action"],
					registered[0]["tenantId"],
					registered[0]["resource"].(map[string]any)["name"],
				},
				[]any{"user.registered", nil, owner.Email},
			)
			root.Call("GET", path+"?cursor="+base64.RawURLEncoding.EncodeToString([]byte("platform 1")), nil).
				Refused(422, "cursor")
		},
		"people and invitations are found by the name that the entry shows": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201)
			person := root.Service.SignUp(nodetest.Address())
			for search, resource := range map[string]string{email: "invitation", person.Email: "user"} {
				found := root.Call("GET", path+"?q="+url.QueryEscape(search), nil).Want(200).List()
				types := []any{}
				for _, e := range found {
					if e["resource"].(map[string]any)["name"] == search {
						types = append(types, e["resource"].(map[string]any)["type"])
					}
				}
				nodetest.Same(t, "some are found",
					len(types) > 0 && len(types) == len(found) && slices.Contains(types, any(resource)), true)
			}
		},
		"it can be cut by time": func(t *testing.T, root *nodetest.Client) {
			a := root.NewTenant("a")
			first := trail(a, "")[0]["timestamp"].(string)
			a.CreateFlag("k", nil)
			for _, e := range root.Call("GET", path+"?limit=1000&tenantId="+a.Tenant+"&from="+first, nil).Want(200).List() {
				if e["timestamp"].(string) < first {
					t.Errorf("an entry of %v is not since %s", e["timestamp"], first)
				}
			}
			for _, e := range root.Call("GET", path+"?limit=1000&to="+first, nil).Want(200).List() {
				if e["timestamp"].(string) >= first {
					t.Errorf("an entry of %v is not before %s", e["timestamp"], first)
				}
			}
		},
	}.run(t)
}
