package http_test

import (
	"strconv"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// bootstrapOf signs a person in again and returns the data of the response.
func bootstrapOf(c *nodetest.Client) map[string]any {
	c.Service.T.Helper()
	return c.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": c.Token}).Want(200).Object()["data"].(map[string]any)
}

// answerMembership accepts or declines a person's membership of a tenant.
func answerMembership(c, tenant *nodetest.Client, choice string) *nodetest.Answer {
	c.Service.T.Helper()
	anywhere := *c
	anywhere.Tenant = ""
	return anywhere.Call("POST", "/api/v1/tenants/"+tenant.Tenant+"/membership/"+choice, nil)
}

// memberShown returns what an admin sees of a member, nil for a person who is none.
func memberShown(boss, member *nodetest.Client) map[string]any {
	for _, m := range boss.Call("GET", usersPath(boss), nil).Want(200).List() {
		if m["userId"] == member.UserID {
			return m
		}
	}
	return nil
}

func sendNotice(boss, member *nodetest.Client) *nodetest.Answer {
	return boss.Call("POST", "/api/v1/notifications/send",
		map[string]any{"userId": member.UserID, "tenantId": boss.Tenant, "title": "Hello", "type": "note"})
}

// checkHidden checks what admins see of a member who has not answered.
func checkHidden(t *testing.T, boss, member *nodetest.Client) {
	t.Helper()
	nodetest.Same(t, "last visit", memberShown(boss, member)["lastAccessedAt"], nil)
	boss.Call("GET", tourPath(member.UserID, "welcome"), nil).Refused(404)
	boss.Call("PUT", tourPath(member.UserID, "welcome"), `{"completed":true}`).Refused(404)
	sendNotice(boss, member).Refused(404)
}

// checkVisible checks what admins see of a member who stays.
func checkVisible(t *testing.T, boss, member *nodetest.Client) {
	t.Helper()
	boss.Service.Eventually("the last visit is shown",
		func() bool { return memberShown(boss, member)["lastAccessedAt"] != nil })
	boss.Call("GET", tourPath(member.UserID, "welcome"), nil).Want(200)
	sendNotice(boss, member).Want(201)
}

// addMember adds a person to a tenant; more are further members of the body.
func addMember(boss, member *nodetest.Client, more string) *nodetest.Answer {
	return boss.Call("POST", usersPath(boss), `{"role":"developer","email":"`+member.Email+`"`+more+`}`)
}

// addedBy returns who added a person to a tenant, by their bootstrap data.
func addedBy(t *testing.T, data map[string]any, tenant *nodetest.Client) any {
	t.Helper()
	for _, one := range data["tenants"].([]any) {
		if m := one.(map[string]any); m["tenant_id"] == tenant.Tenant {
			return m["added_by"]
		}
	}
	t.Error("the person is no member")
	return nil
}

func TestNewMembersDecideWhetherTheyStay(t *testing.T) {
	nodetest.Cases{
		"a tenant that one was added to is not opened, and its admins see nothing before the answer": func(t *testing.T, boss *nodetest.Client) {
			member := boss.Service.SignUp(nodetest.Address())
			addMember(boss, member, "").Want(201)
			data := bootstrapOf(member)
			nodetest.Same(t, "active and canonical", []any{data["active_tenant_id"], data["canonical_tenant_id"]},
				[]any{member.Tenant, member.Tenant})
			nodetest.Same(t, "who added them", []any{addedBy(t, data, boss), addedBy(t, data, member)}, []any{boss.Email, nil})
			member.Call("GET", "/api/v1/flags", nil).Want(200)
			boss.Call("PATCH", usersPath(boss, member.UserID), `{"role":"viewer"}`).Want(200)
			boss.Service.JobsDone()
			checkHidden(t, boss, member)
			notices, _ := inboxOf(member, "")
			nodetest.Same(t, "notices", nodetest.Column(notices, "type"), []any{"tenant.member_added"})

			answerMembership(member, boss, "accept").Want(200)
			checkVisible(t, boss, member)
			nodetest.Same(t, "who added them, once they stay", addedBy(t, bootstrapOf(member), boss), nil)
		},
		"opening a tenant answers": func(t *testing.T, boss *nodetest.Client) {
			member := boss.Service.SignUp(nodetest.Address())
			addMember(boss, member, "").Want(201)
			bootstrapOf(member)
			checkHidden(t, boss, member)
			member.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", boss.Tenant).Want(200)
			checkVisible(t, boss, member)
		},
		"a person whose own tenant is gone opens none of a stranger": func(t *testing.T, boss *nodetest.Client) {
			member := boss.Service.SignUp(nodetest.Address())
			member.Call("DELETE", "/api/v1/tenants/"+member.Tenant, nil).Want(204)
			addMember(boss, member, "").Want(201)
			data := bootstrapOf(member)
			nodetest.Same(t, "active", []any{data["active_tenant_id"], data["active_tenant_role"]}, []any{"", ""})
			nodetest.Same(t, "canonical", []any{data["canonical_tenant_id"], data["canonical_role"]}, []any{"", ""})
			checkHidden(t, boss, member)
			anywhere := *member
			anywhere.Tenant = ""
			anywhere.Call("GET", "/api/v1/audit", nil).Refused(403)
			anywhere.Call("POST", "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"u"}}`).Refused(403)
			checkHidden(t, boss, member)
			own := member.NewTenant("own")
			data = bootstrapOf(member)
			nodetest.Same(t, "active and canonical", []any{data["active_tenant_id"], data["canonical_tenant_id"]},
				[]any{own.Tenant, own.Tenant})
			checkHidden(t, boss, member)
		},
		"a call that names no tenant goes to the first that one has confirmed": func(t *testing.T, boss *nodetest.Client) {
			member := boss.Service.SignUp(nodetest.Address())
			member.Call("DELETE", "/api/v1/tenants/"+member.Tenant, nil).Want(204)
			second := boss.NewTenant("second")
			for _, tenant := range []*nodetest.Client{boss, second} {
				addMember(tenant, member, "").Want(201)
				bootstrapOf(member)
			}
			answerMembership(member, second, "accept").Want(200)
			anywhere := *member
			anywhere.Tenant = ""
			answering := func() any {
				created := anywhere.Call("GET", "/api/v1/audit?action=tenant.created", nil).Want(200).List()
				return created[0]["resource"].(map[string]any)["id"]
			}
			nodetest.Same(t, "the tenant of a call", answering(), any(second.Tenant))
			nodetest.Same(t, "canonical", bootstrapOf(member)["canonical_tenant_id"], any(second.Tenant))
			nodetest.Same(t, "last visit of the other", memberShown(boss, member)["lastAccessedAt"], nil)
			answerMembership(member, boss, "accept").Want(200)
			nodetest.Same(t, "the tenant of a call", answering(), any(boss.Tenant))
		},
	}.Run(t)
}

func TestInvitationsAreAcceptedOrDeclined(t *testing.T) {
	nodetest.Cases{
		"who left is added again only by an invitation that they accept": func(t *testing.T, boss *nodetest.Client) {
			for _, leave := range []func(*nodetest.Client){
				func(m *nodetest.Client) { answerMembership(m, boss, "decline").Want(200) },
				func(m *nodetest.Client) {
					m.Call("DELETE", usersPath(boss, m.UserID), nil, "X-Tenant-ID", boss.Tenant).Want(204)
				},
			} {
				member := boss.Service.SignUp(nodetest.Address())
				addMember(boss, member, "").Want(201)
				bootstrapOf(member)
				leave(member)
				refused := addMember(boss, member, "").Refused(409).Object()
				kind := boss.Service.URL + "/problems/left"
				nodetest.Same(t, "type", refused["type"], kind)
				if detail := refused["detail"].(string); !strings.Contains(detail, "left the tenant or declined its invitation") {
					t.Errorf("the refusal says %q", detail)
				}
				boss.Call("GET", "/problems/left", nil).Want(200).Shows(map[string]any{"type": kind, "status": 409})

				addMember(boss, member, `,"invitation":true`).Want(201).
					Shows(map[string]any{"email": member.Email, "pending": true, "displayName": ""})
				data := bootstrapOf(member)
				nodetest.Same(t, "invitations", data["invitations"], []any{
					map[string]any{
						"tenant_id":   boss.Tenant,
						"tenant_name": boss.Call("GET", "/api/v1/tenants/"+boss.Tenant, nil).Object()["name"],
						"role":        "developer",
						"invited_by":  boss.Email,
					},
				})
				nodetest.Same(t, "tenants", len(data["tenants"].([]any)), 1)
				member.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", boss.Tenant).Refused(403)
				answerMembership(member, boss, "decline").Want(200)
				answerMembership(member, boss, "accept").Refused(404)
				answerMembership(member, boss, "decline").Refused(404)

				addMember(boss, member, "").Refused(409)
				addMember(boss, member, `,"invitation":true`).Want(201)
				answerMembership(member, boss, "accept").Want(200)
				checkVisible(t, boss, member)
				boss.Call("DELETE", usersPath(boss, member.UserID), nil).Want(204)
				addMember(boss, member, "").Want(201) // an admin had removed them
				bootstrapOf(member)
				checkHidden(t, boss, member)
			}
		},
		"the tenant does not learn who declined its invitation": func(t *testing.T, boss *nodetest.Client) {
			invited := boss.Service.SignUp(nodetest.Address())
			invitation := addMember(boss, invited, `,"invitation":true`).Want(201).Object()["userId"]
			own := boss.Call("POST", usersPath(boss), `{"role":"viewer","email":"`+nodetest.Address()+`","invitation":true}`).Want(201).Object()["userId"]
			boss.Call("DELETE", usersPath(boss, own.(string)), nil).Want(204)
			answerMembership(invited, boss, "decline").Want(200)

			entries := boss.Call("GET", "/api/v1/audit?action=tenant.member_removed", nil).Want(200).List()
			nodetest.Same(t, "who declined and who withdrew", nodetest.Column(entries, "userName"),
				[]any{"the invited person", boss.Email})
			nodetest.Same(t, "ids", nodetest.Column(entries, "userId"), []any{invitation, boss.UserID})
			nodetest.Same(t, "kinds", nodetest.Column(entries, "actorType"), []any{"invited", "user"})
			nodetest.Same(t, "what it is about", entries[0]["resource"],
				map[string]any{"type": "member", "id": invitation, "name": "withdrawn invitation"})
			for _, path := range []string{
				"/api/v1/audit", "/api/v1/audit/export?format=ndjson", "/api/v1/audit/export?format=csv", "/api/v1/audit/facts", "/api/v1/notifications", usersPath(boss),
			} {
				text := string(boss.Call("GET", path, nil).Want(200).Body)
				for _, word := range []string{invited.UserID, invited.Email} {
					if strings.Contains(text, word) {
						t.Errorf("%s has %q: %s", path, word, text)
					}
				}
			}
			nodetest.Same(t, "by the invited",
				len(boss.Call("GET", "/api/v1/audit?userId="+invitation.(string), nil).Want(200).List()), 1)
			nodetest.Same(t, "by the person",
				len(boss.Call("GET", "/api/v1/audit?userId="+invited.UserID, nil).Want(200).List()), 0)
		},
		"a person who declined becomes a member only once they accept": func(_ *testing.T, boss *nodetest.Client) {
			invited := boss.Service.SignUp(nodetest.Address())
			addMember(boss, invited, `,"invitation":true`).Want(201)
			answerMembership(invited, boss, "decline").Want(200)
			addMember(boss, invited, "").Refused(409)
			addMember(boss, invited, `,"invitation":true`).Want(201)
			bootstrapOf(invited)
			invited.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", boss.Tenant).Refused(403)
			answerMembership(invited, boss, "accept").Want(200)
			boss.Call("DELETE", usersPath(boss, invited.UserID), nil).Want(204)
			addMember(boss, invited, "").Want(201) // they have accepted since they declined
		},
		"an invitation to a new address is accepted, too": func(_ *testing.T, boss *nodetest.Client) {
			invited := boss.Service.SignUp(nodetest.Address())
			addMember(boss, invited, `,"invitation":true`).Want(201)
			bootstrapOf(invited)
			invited.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", boss.Tenant).Refused(403)
			answerMembership(boss.Service.SignUp(nodetest.Address()), boss, "accept").Refused(404)
			answerMembership(invited, boss, "accept").Want(200)
			invited.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", boss.Tenant).Want(200)
			answerMembership(invited, boss, "accept").Want(200)
			answerMembership(boss, boss, "decline").Refused(409) // the last admin
		},
	}.Run(t)
}

// A person without a tenant of their own evaluates without X-Tenant-ID while the database is down.
func TestMembersEvaluateDuringAnOutage(t *testing.T) {
	t.Parallel()
	dir, p := nodetest.OwnPostgres(t)
	s := nodetest.On(t, p.URL())
	boss := s.SignUp(nodetest.Address())
	boss.CreateEnabledFlag("f", nil)
	second := boss.NewTenant("second")
	// joins creates a new member of tenants without a tenant of their own, who names no tenant.
	joins := func(tenants ...*nodetest.Client) *nodetest.Client {
		member := s.SignUp(nodetest.Address())
		member.Call("DELETE", "/api/v1/tenants/"+member.Tenant, nil).Want(204)
		member.Tenant = ""
		for _, tenant := range tenants {
			tenant.Call("POST", usersPath(tenant), map[string]string{"role": "viewer", "email": member.Email}).Want(201)
			bootstrapOf(member)
		}
		return member
	}
	evaluate := func(c *nodetest.Client) []*nodetest.Answer {
		return []*nodetest.Answer{
			c.Call("POST", "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"u"}}`),
			c.Call("POST", "/api/v1/flags/evaluate", `{}`),
		}
	}
	accepted, opened, unknown, only := joins(boss, second), joins(boss, second), joins(boss, second), joins(boss)
	answerMembership(accepted, boss, "accept").Want(200)
	opened.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", boss.Tenant).Want(200)
	elsewhere := *accepted
	elsewhere.Service = s.SecondNode()
	elsewhere.Service.Eventually("another node has heard of the member", func() bool {
		return evaluate(&elsewhere)[0].Status == 200
	})

	defer nodetest.Outage(t, dir)()
	s.Eventually("the database is gone", func() bool { return boss.Call("GET", "/api/v1/tenants", nil).Status == 503 })
	for name, c := range map[string]*nodetest.Client{
		"who accepted": accepted, "who opened a tenant": opened, "whose use another node has written": &elsewhere,
		"who has one tenant, which they have not confirmed": only,
	} {
		for _, a := range evaluate(c) {
			if a.Status != 200 || !strings.Contains(string(a.Body), `"f"`) {
				t.Errorf("a person %s evaluates: %d %s", name, a.Status, a.Body)
			}
		}
	}
	for _, a := range evaluate(unknown) {
		if a.Status != 403 || !strings.Contains(string(a.Body), "X-Tenant-ID") {
			t.Errorf("a person of two tenants, neither of which they have confirmed, evaluates: %d %s", a.Status, a.Body)
		}
	}
	unknown.Tenant = boss.Tenant
	evaluate(unknown)[0].Want(200)
}

func TestUnconfirmedMembersUseNoQuotaOfTheTenant(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", Limits: nodetest.Generous,
		Now: stopped().now,
	}, nodetest.Log(t))
	boss := s.SignUp(nodetest.Address())
	member := s.SignUp(nodetest.Address())
	member.Call("DELETE", "/api/v1/tenants/"+member.Tenant, nil).Want(204)
	boss.Call("POST", usersPath(boss), map[string]string{"role": "viewer", "email": member.Email}).Want(201)
	bootstrapOf(member)
	member.Tenant = ""
	left := func() int {
		t.Helper()
		n, err := strconv.Atoi(boss.Call("GET", "/api/v1/flags", nil).Want(200).Header.Get("RateLimit-Remaining"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The tenant needs more calls than its admin, whose own limit is as high.
	counted := func() int {
		const calls = 100
		before := left()
		for range calls {
			member.Call("GET", "/api/v1/tenants", nil).Want(200)
		}
		return before - left() - 1
	}
	nodetest.Same(t, "calls that count for the tenant before the member has confirmed", counted(), 0)
	answerMembership(member, boss, "accept").Want(200)
	if n := counted(); n < 50 {
		t.Errorf("%d calls count for the tenant once the member has confirmed", n)
	}
}
