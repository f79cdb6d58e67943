package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// Notices are notifications that the service itself sends.
func TestNotices(t *testing.T) {
	platformCases{
		"members are told of their tenants and roles, and nobody of their own doing": func(t *testing.T, root *nodetest.Client) {
			me := root.Service.SignUp(nodetest.Address()).NewTenant("Acme")
			dev := me.Join("developer").Stay()
			added := noticed(dev, "tenant.member_added")
			nodetest.Same(t, "added",
				[]any{added["title"], added["body"], added["actionType"], added["referenceId"], added["read"]},
				[]any{"You are now a member of another tenant", "Your role is developer.", "tenant", me.Tenant, false})
			me.Call("PATCH", usersPath(me, dev.UserID), `{"role":"viewer"}`).Want(200)
			changed := noticed(dev, "tenant.role_changed") // without the words of whoever named the tenant
			nodetest.Same(t, "the role", []any{changed["title"], changed["body"], changed["referenceId"]},
				[]any{"Your role in a tenant has changed", "Your role is viewer.", me.Tenant})
			me.Call("PATCH", usersPath(me, dev.UserID), `{"role":"admin"}`).Want(200)
			me.Call("PATCH", usersPath(me, me.UserID), `{"role":"viewer"}`).Want(200)
			me.Service.JobsDone()
			list, _ := inboxOf(me, "")
			nodetest.Same(t, "what those are told who did it themselves", nodetest.Column(list, "type"),
				[]string{"invitation.accepted"})
		},
		"an inviter is notified of the member's id, but not of the address": func(t *testing.T, root *nodetest.Client) {
			me, email := root.Service.SignUp(nodetest.Address()).NewTenant("Acme"), nodetest.Address()
			me.Call("POST", usersPath(me), map[string]string{"email": email, "role": "viewer"}).Want(201)
			joined := root.Service.SignUp(email)
			nodetest.Same(t, "the new member", noticed(joined, "tenant.member_added")["body"], "Your role is viewer.")
			told := noticed(me, "invitation.accepted")
			nodetest.Same(t, "the inviter", []any{told["title"], told["referenceId"], told["data"]},
				[]any{"Your invitation to Acme was accepted", me.Tenant, map[string]any{"userId": joined.UserID}})
			if strings.Contains(fmt.Sprint(told), email) {
				t.Errorf("it has the address: %v", told)
			}
		},
		"whoever invited somebody to the platform is told that they accepted": func(_ *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			id := root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["id"]
			root.Service.SignUp(email).Call("POST", invitationsPath+"/accept", nil).Want(200)
			root.Service.Eventually("there is a notification of the invitation", func() bool {
				list, _ := inboxOf(root, "?limit=100")
				about := entry(list, "referenceId", id)
				return about != nil && about["type"] == "invitation.accepted"
			})
		},
		"the admins of a tenant are told of a payment that failed": func(t *testing.T, root *nodetest.Client) {
			me := root.Service.SignUp(nodetest.Address()).NewTenant("Acme")
			other, dev := me.Join("admin").Stay(), me.Join("developer").Stay()
			store, stream := me.Service.Store(), events.TenantStream(me.Tenant)
			var last events.Revision
			for r, err := range store.Read(t.Context(), stream, 0) {
				if err != nil {
					t.Fatal(err)
				}
				last = r.Revision
			}
			unpaid := events.SubscriptionChanged{
				To: events.Subscription{Plan: "standard", Status: events.PastDue, PastDueSince: time.Now()},
			}
			still := events.SubscriptionChanged{From: unpaid.To, To: unpaid.To}
			active, over := unpaid.To, unpaid.To
			active.Status, over.Status = events.Active, events.Unpaid
			givenUp := events.SubscriptionChanged{From: unpaid.To, To: over} // they were notified before
			paid, atOnce := events.SubscriptionChanged{
				From: over,
				To:   active,
			}, events.SubscriptionChanged{
				From: active,
				To:   over,
			}
			var facts []events.Event
			for _, fact := range []events.Fact{unpaid, still, givenUp, paid, atOnce} {
				facts = append(
					facts,
					events.Event{
						ID:       uuid.New(),
						Metadata: events.Metadata{Time: time.Now(), Actor: events.Actor{Kind: events.SystemActor, ID: "flagledger"}},
						Fact:     fact,
					},
				)
			}
			if _, err := store.Append(t.Context(), stream, last, facts); err != nil {
				t.Fatal(err)
			}
			for _, admin := range []*nodetest.Client{me, other} {
				nodetest.Same(t, "an admin", noticed(admin, "billing.payment_failed")["title"], "A payment for Acme failed")
			}
			me.Service.JobsDone()
			list, _ := inboxOf(me, "")
			nodetest.Same(t, "how often", len(list), 2+2) // and of two accepted invitations
			list, _ = inboxOf(dev, "")
			nodetest.Same(t, "others", nodetest.Column(list, "type"), []string{"tenant.member_added"})
		},
		"platform admins send to anyone": func(_ *testing.T, root *nodetest.Client) {
			someone := root.Service.SignUp(nodetest.Address())
			message := map[string]any{"userId": someone.UserID, "title": "Maintenance", "type": "x"}
			root.Call("POST", inboxPath+"/send", message).Want(201)
			message["tenantId"] = root.Tenant
			root.Call("POST", inboxPath+"/send", message).Refused(404)
			message["tenantId"] = uuid.NewString()
			root.Call("POST", inboxPath+"/send", message).Refused(404)
			message["tenantId"] = someone.Tenant
			root.Call("POST", inboxPath+"/send", message).Want(201)
			root.Call("POST", inboxPath+"/send", map[string]any{"userId": uuid.NewString(), "title": "x", "type": "x"}).
				Refused(404)
			root.Call("POST", inboxPath+"/send", `{}`).Refused(422, "userId", "title", "type")
		},
		"a deleted tenant and an erased person leave nothing": func(t *testing.T, root *nodetest.Client) {
			me := root.Service.SignUp(nodetest.Address()).NewTenant("Acme")
			dev := welcomed(me)
			send(me, dev.UserID, "of the tenant")
			dev.Call("POST", devicesPath, map[string]any{"deviceToken": uuid.NewString(), "deviceType": "web"}).Want(201)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			list, _ := inboxOf(dev, "")
			nodetest.Same(t, "how much is left of the tenant", len(list), 0)
			root.Call("POST", inboxPath+"/send", map[string]any{"userId": dev.UserID, "title": "personal", "type": "x"}).
				Want(201)
			erase(t, root.Service, dev.UserID)
			pool, err := node.OpenPool(t.Context(), root.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			var left int
			err = pool.QueryRow(t.Context(), `select (select count(*) from keep.notifications where user_id = $1) + (select count(*) from keep.devices where user_id = $1)`, dev.UserID).
				Scan(&left)
			if err != nil || left > 0 {
				t.Errorf("%d rows are left: %v", left, err)
			}
			root.Call("POST", inboxPath+"/send", map[string]any{"userId": dev.UserID, "title": "x", "type": "x"}).Refused(404)
		},
	}.run(t)
}
