package http_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestInvitations(t *testing.T) {
	platformCases{
		"an invitation is made, seen, sent again and accepted": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			a := root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).Want(201)
			body := a.Object()
			nodetest.Members(t, "an invitation", body, "id", "email", "role", "status", "invitedBy", "createdAt", "expiresAt")
			a.Shows(map[string]any{"email": email, "role": "admin", "status": "pending", "invitedBy": root.UserID})
			path := invitationsPath + "/" + body["id"].(string)
			nodetest.Same(t, "Location", a.Header.Get("Location"), path)
			nodetest.Same(t, "the invitation", root.Call("GET", path, nil).Want(200).Object(), body)
			nodetest.Same(t, "the list's", entry(root.Call("GET", invitationsPath, nil).Want(200).List(), "id", body["id"]), body)
			created, _ := time.Parse(time.RFC3339, body["createdAt"].(string))
			expires, _ := time.Parse(time.RFC3339, body["expiresAt"].(string))
			if life := expires.Sub(created).Round(time.Minute); life != 7*24*time.Hour {
				t.Errorf("it lives for %v, want 7 days", life)
			}
			root.Call("POST", invitationsPath, map[string]string{"email": strings.ToUpper(email), "role": "viewer"}).Refused(409)
			root.Call("POST", path+"/resend", nil).Want(200).Shows(map[string]any{"success": true})
			if repeated := root.Call("GET", path, nil).Object()["expiresAt"].(string); repeated <= body["expiresAt"].(string) {
				t.Errorf("sent again it expires at %s", repeated)
			}
			invited := root.Service.SignUp(email)
			invited.Call("GET", usersOfPlatform, nil).Refused(403)
			accepted := invited.Call("POST", invitationsPath+"/accept", nil).
				Want(200).
				Shows(map[string]any{"success": true, "status": "accepted", "role": "admin"})
			nodetest.Members(
				t,
				"the answer to who accepts",
				accepted.Object(),
				append(slices.Collect(maps.Keys(body)), "success")...)
			invited.Call("GET", usersOfPlatform, nil).Want(200)
			invited.Call("POST", invitationsPath+"/accept", nil).Refused(404)
			root.Call("GET", path, nil).Want(200).Shows(map[string]any{"status": "accepted"})
			root.Call("DELETE", path, nil).Refused(409)
			root.Call("POST", path+"/resend", nil).Refused(409)
		},
		"a revoked invitation cannot be accepted": func(_ *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			path := invitationsPath + "/" + root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["id"].(string)
			root.Call("DELETE", path, nil).Want(204)
			root.Call("DELETE", path, nil).Want(204)
			root.Call("GET", path, nil).Want(200).Shows(map[string]any{"status": "revoked"})
			root.Call("POST", path+"/resend", nil).Refused(409)
			root.Service.SignUp(email).Call("POST", invitationsPath+"/accept", nil).Refused(404)
			root.Call("GET", invitationsPath+"/none", nil).Refused(404)
			root.Call("DELETE", invitationsPath+"/none", nil).Refused(404)
		},
		"an invitation that has expired cannot be accepted, and can be sent again": func(t *testing.T, root *nodetest.Client) {
			email, id := nodetest.Address(), uuid.NewString()
			pool, err := node.OpenPool(t.Context(), root.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), `insert into keep.invitations values ($1, $2)`, id, email); err != nil {
				t.Fatal(err)
			}
			_, err = root.Service.Store().Append(t.Context(), events.InvitationStream(id), 0, []events.Event{
				{
					ID: uuid.New(),
					Metadata: events.Metadata{
						Time:  time.Now().Add(-8 * 24 * time.Hour),
						Actor: events.Actor{Kind: events.UserActor, ID: root.UserID},
					},
					Fact: events.InvitationCreated{
						ID:        id,
						Role:      events.PlatformViewer,
						ExpiresAt: time.Now().Add(-24 * time.Hour),
					},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			root.Service.Eventually("the invitation is there",
				func() bool { return root.Call("GET", invitationsPath+"/"+id, nil).Status == 200 })
			root.Call("GET", invitationsPath+"/"+id, nil).Shows(map[string]any{"status": "expired"})
			late := root.Service.SignUp(email)
			late.Call("POST", invitationsPath+"/accept", nil).Refused(404)
			root.Call("POST", invitationsPath+"/"+id+"/resend", nil).Want(200)
			late.Call("POST", invitationsPath+"/accept", nil).Want(200)
		},
		"an invitation to less takes nothing away": func(_ *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			staff := root.Service.SignUp(email)
			root.Call("PATCH", usersOfPlatform+"/"+staff.UserID+"/role", `{"role":"admin"}`).Want(200)
			root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201)
			staff.Call("POST", invitationsPath+"/accept", nil).Want(200)
			staff.Call("GET", usersOfPlatform, nil).Want(200)
		},
		"a role that a node which died did not give is given at the next attempt, and once it is taken away no more": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			id := root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).Want(201).Object()["id"].(string)
			staff := root.Service.SignUp(email)
			_, err := root.Service.Store().Append(t.Context(), events.InvitationStream(id), 1, []events.Event{
				{
					ID:       uuid.New(),
					Metadata: events.Metadata{Time: time.Now().UTC(), Actor: events.Actor{Kind: events.UserActor, ID: staff.UserID}},
					Fact:     events.InvitationAccepted{UserID: staff.UserID},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			staff.Call("GET", usersOfPlatform, nil).Refused(403)
			staff.Call("POST", invitationsPath+"/accept", nil).Want(200).Shows(map[string]any{"id": id, "status": "accepted"})
			staff.Call("GET", usersOfPlatform, nil).Want(200)
			root.Call("PATCH", usersOfPlatform+"/"+staff.UserID+"/role", `{"role":null}`).Want(200)
			staff.Call("POST", invitationsPath+"/accept", nil).Refused(404)
			staff.Call("GET", usersOfPlatform, nil).Refused(403)
		},
		"what is wrong with an invitation is named": func(_ *testing.T, root *nodetest.Client) {
			root.Call("POST", invitationsPath, `{}`).Refused(422, "email", "role")
			root.Call("POST", invitationsPath, `{"email":"nobody","role":"super_user"}`).Refused(422, "email", "role")
			root.Call("POST", invitationsPath, `{"email":"a@example.com","role":"viewer","status":"accepted"}`).
				Refused(422, "status")
			root.Call("POST", "/admin/invitations", `{"email":"nobody","role":"admin"}`).Refused(422, "email", "role")
		},
		"the old paths have other words for the roles": func(t *testing.T, root *nodetest.Client) {
			staff := root.Service.SignUp(nodetest.Address())
			a := root.Call("PATCH", "/admin/users/"+staff.UserID+"/role", `{"role":"vendor_support"}`).
				Want(200).
				Shows(map[string]any{"role": "vendor_support"})
			if a.Header.Get("Deprecation") == "" ||
				!strings.Contains(a.Header.Get("Link"), usersOfPlatform+"/"+staff.UserID+"/role") {
				t.Errorf("the headers are %v", a.Header)
			}
			nodetest.Same(t, "the role", entry(root.Call("GET", usersOfPlatform, nil).List(), "userId", staff.UserID)["role"],
				"admin")
			nodetest.Same(t, "the role in old words",
				entry(root.Call("GET", "/admin/users", nil).List(), "userId", staff.UserID)["role"], "vendor_support")
			root.Call("PATCH", "/admin/users/"+staff.UserID+"/role", `{"role":"admin"}`).Refused(422, "role")
			root.Call("PATCH", "/admin/users/"+staff.UserID+"/role", `{"role":"super_admin"}`).Refused(422, "role")
			email := nodetest.Address()
			root.Call("POST", "/admin/invitations", map[string]string{"email": email, "role": "super_admin"}).
				Refused(422, "role")
			root.Call("POST", "/admin/invitations", map[string]string{"email": email, "role": "vendor_support"}).
				Want(201).
				Shows(map[string]any{"role": "vendor_support"})
			second := root.Service.SignUp("second@example.com")
			second.Call("GET", usersOfPlatform+"/system", nil).Want(200)
		},
		"the old invitation does what stands for it today": func(t *testing.T, root *nodetest.Client) {
			email, colleague := nodetest.Address(), nodetest.Address()
			root.Call("POST", "/admin/invite", map[string]string{"email": email, "role": "admin"}).
				Want(200).
				Shows(map[string]any{"success": true})
			nodetest.Same(t, "the invitation", entry(root.Call("GET", invitationsPath, nil).List(), "email", email)["role"],
				"admin")
			root.Call("POST", "/admin/invite", map[string]string{"email": colleague, "role": "user"}).Want(200)
			nodetest.Same(t, "the member", entry(root.Call("GET", usersPath(root), nil).List(), "email", colleague)["role"],
				"viewer")
			owner := root.Service.SignUp(nodetest.Address())
			owner.Call("POST", "/admin/invite", map[string]string{"email": email, "role": "admin"}).Refused(403)
			owner.Call("POST", "/admin/invite", map[string]string{"email": email, "role": "user"}).Want(200)
			owner.Join("developer").Call("POST", "/admin/invite", map[string]string{"email": email, "role": "user"}).Refused(403)
			owner.Call("POST", "/admin/invite", map[string]string{"email": "nobody", "role": "owner"}).
				Refused(422, "email", "role")
		},
	}.run(t)
}
