package http_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// act is a call that changes something.
type act struct {
	method, path, body string
	status             int
	stream             func(*nodetest.Answer) string // the stream of the fact
}

// acts are calls that change something, each with a tenant prepared by its setup.
var acts = map[string]func(me *nodetest.Client) act{
	"create a flag": func(me *nodetest.Client) act {
		return act{
			"POST",
			"/api/v1/flags",
			`{"key":"k","type":"string","flag_variations":[{"name":"a","value":"A"}]}`,
			201,
			flagStream(me),
		}
	},
	"create a flag under an old path": func(me *nodetest.Client) act {
		return act{"POST", "/api/flags", `{"key":"k","type":"boolean"}`, 201, flagStream(me)}
	},
	"create a flag in a project": func(me *nodetest.Client) act {
		id, _ := me.CreateProject("p")
		return act{"POST", "/api/v1/flags/projects/" + id + "/flags", `{"key":"k","type":"boolean"}`, 201, flagStream(me)}
	},
	"update a flag": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"PATCH", nodetest.FlagPath("k"), `{"name":"N","status":"inactive"}`, 200, flagStream(me)}
	},
	"enable a flag": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"POST", nodetest.FlagPath("k", "/enable"), ``, 200, flagStream(me)}
	},
	"disable a flag": func(me *nodetest.Client) act {
		me.CreateEnabledFlag("k", nil)
		return act{"POST", nodetest.FlagPath("k", "/disable"), ``, 200, flagStream(me)}
	},
	"delete a flag": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"DELETE", nodetest.FlagPath("k"), ``, 204, flagStream(me)}
	},
	"add a variation": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"POST", nodetest.FlagPath("k", "/variations"), `{"name":"v","value":true}`, 201, flagStream(me)}
	},
	"update a variation": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		v := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
		return act{"PATCH", nodetest.FlagPath("k", "/variations/", v), `{"weight":5}`, 200, flagStream(me)}
	},
	"remove a variation": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		v := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
		return act{"DELETE", nodetest.FlagPath("k", "/variations/", v), ``, 204, flagStream(me)}
	},
	"set rules": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{
			"PUT",
			nodetest.FlagPath("k", "/rules"),
			`{"rules":[{"conditions":[],"serve":{"value":true}}]}`,
			200,
			flagStream(me),
		}
	},
	"set a fallthrough": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"PUT", nodetest.FlagPath("k", "/fallthrough"), `{"serve":{"value":true}}`, 200, flagStream(me)}
	},
	"set prerequisites": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		me.CreateFlag("l", nil)
		return act{
			"PUT", nodetest.FlagPath("k", "/prerequisites"), `{"prerequisites":[{"flagKey":"l","off":true}]}`, 200, flagStream(me),
		}
	},
	"create a segment": func(me *nodetest.Client) act {
		return act{"POST", segmentsPath, `{"key":"beta"}`, 201, segmentStream(me)}
	},
	"update a segment": func(me *nodetest.Client) act {
		createSegment(me, "beta", "")
		return act{"PATCH", segmentPath("beta"), `{"name":"B"}`, 200, segmentStream(me)}
	},
	"set a segment's rules": func(me *nodetest.Client) act {
		createSegment(me, "beta", "")
		return act{"PUT", segmentPath("beta", "/rules"), `{"rules":[{"conditions":[]}]}`, 200, segmentStream(me)}
	},
	"change members": func(me *nodetest.Client) act {
		createSegment(me, "beta", "")
		return act{"POST", segmentPath("beta", "/members"), `{"list":"included","add":["u"]}`, 200, segmentStream(me)}
	},
	"forget a segment's members": func(me *nodetest.Client) act {
		createPrivateSegment(me, "beta")
		return act{"POST", segmentPath("beta", "/forget"), ``, 200, segmentStream(me)}
	},
	"revert a segment": func(me *nodetest.Client) act {
		createSegment(me, "beta", ofPlan("pro"))
		return act{"POST", segmentPath("beta", "/revert"), `{"version":1}`, 200, segmentStream(me)}
	},
	"delete a segment": func(me *nodetest.Client) act {
		createSegment(me, "beta", "")
		return act{"DELETE", segmentPath("beta"), ``, 204, segmentStream(me)}
	},
	"create a project": func(*nodetest.Client) act {
		return act{
			"POST",
			"/api/v1/projects",
			`{"name":"p"}`,
			201,
			func(a *nodetest.Answer) string { return events.ProjectStream(a.Object()["id"].(string)) },
		}
	},
	"update a project": func(me *nodetest.Client) act {
		id, path := me.CreateProject("p")
		return act{
			"PATCH",
			path,
			`{"color":"#000000"}`,
			200,
			func(*nodetest.Answer) string { return events.ProjectStream(id) },
		}
	},
	"delete a project": func(me *nodetest.Client) act {
		id, path := me.CreateProject("p")
		return act{"DELETE", path, ``, 204, func(*nodetest.Answer) string { return events.ProjectStream(id) }}
	},
	"create a tenant": func(*nodetest.Client) act {
		return act{
			"POST",
			"/api/v1/tenants",
			`{"name":"t","contactName":"c"}`,
			201,
			func(a *nodetest.Answer) string { return events.TenantStream(a.Object()["id"].(string)) },
		}
	},
	"update a tenant": func(me *nodetest.Client) act {
		return act{"PATCH", "/api/v1/tenants/" + me.Tenant, `{"name":"t","contactName":"c"}`, 200, tenantStream(me)}
	},
	"add an environment": func(me *nodetest.Client) act {
		return act{"POST", "/api/v1/tenants/" + me.Tenant + "/environments", `{"environment":"qa"}`, 201, tenantStream(me)}
	},
	"arrange environments": func(me *nodetest.Client) act {
		return act{"PUT", "/api/v1/tenants/" + me.Tenant + "/environments/settings",
			`{"environments":[{"name":"development","color":"#1c7ed6"},{"name":"production","color":"#e03131"}]}`, 200, tenantStream(me)}
	},
	"delete an environment": func(me *nodetest.Client) act {
		return act{"DELETE", "/api/v1/tenants/" + me.Tenant + "/environments/development", ``, 204, tenantStream(me)}
	},
	"add a member": func(me *nodetest.Client) act {
		member := me.Service.SignUp(nodetest.Address())
		email := member.Call("GET", "/api/v1/tenants", nil).List()[0]["primaryEmail"]
		return act{
			"POST",
			"/api/v1/tenants/" + me.Tenant + "/users",
			fmt.Sprintf(`{"email":%q,"role":"viewer"}`, email),
			201,
			tenantStream(me),
		}
	},
	"add a pending member": func(me *nodetest.Client) act {
		return act{
			"POST",
			"/api/v1/tenants/" + me.Tenant + "/users",
			fmt.Sprintf(`{"email":%q,"role":"viewer"}`, nodetest.Address()),
			201,
			tenantStream(me),
		}
	},
	"change a role": func(me *nodetest.Client) act {
		return act{
			"PATCH",
			"/api/v1/tenants/" + me.Tenant + "/users/" + me.Join("viewer").UserID,
			`{"role":"admin"}`,
			200,
			tenantStream(me),
		}
	},
	"create an evaluation key": func(me *nodetest.Client) act {
		return act{"POST", keysPath, `{"name":"Shop","kind":"browser","environment":"production","signed":true}`, 201, tenantStream(me)}
	},
	"change an evaluation key": func(me *nodetest.Client) act {
		key, _ := createKey(me, "browser", nil)
		return act{"PATCH", keysPath + "/" + key["id"].(string), `{"name":"Store"}`, 200, tenantStream(me)}
	},
	"rotate an evaluation key": func(me *nodetest.Client) act {
		key, _ := createKey(me, "browser", nil)
		return act{"POST", keysPath + "/" + key["id"].(string) + "/rotate", `{}`, 200, tenantStream(me)}
	},
	"delete an evaluation key": func(me *nodetest.Client) act {
		key, _ := createKey(me, "browser", nil)
		return act{"DELETE", keysPath + "/" + key["id"].(string), ``, 204, tenantStream(me)}
	},
	"delete an OAuth client": func(me *nodetest.Client) act {
		id, _ := me.OAuthClient("c", "flags:read")
		return act{"DELETE", "/api/v1/oauth/clients/" + id, ``, 204, tenantStream(me)}
	},
	"create an invitation": func(*nodetest.Client) act {
		return act{
			"POST",
			invitationsPath,
			fmt.Sprintf(`{"email":%q,"role":"viewer"}`, nodetest.Address()),
			201,
			func(a *nodetest.Answer) string { return events.InvitationStream(a.Object()["id"].(string)) },
		}
	},
	"revoke an invitation": func(me *nodetest.Client) act {
		id := invitation(me)
		return act{
			"DELETE",
			invitationsPath + "/" + id,
			``,
			204,
			func(*nodetest.Answer) string { return events.InvitationStream(id) },
		}
	},
	"send an invitation again": func(me *nodetest.Client) act {
		id := invitation(me)
		return act{
			"POST",
			invitationsPath + "/" + id + "/resend",
			``,
			200,
			func(*nodetest.Answer) string { return events.InvitationStream(id) },
		}
	},
	"deactivate a person": func(me *nodetest.Client) act {
		id := me.Service.SignUp(nodetest.Address()).UserID
		return act{
			"PATCH",
			usersOfPlatform + "/" + id + "/deactivate",
			``,
			200,
			func(*nodetest.Answer) string { return events.UserStream(id) },
		}
	},
	"give a platform role": func(me *nodetest.Client) act {
		id := me.Service.SignUp(nodetest.Address()).UserID
		return act{
			"PATCH",
			usersOfPlatform + "/" + id + "/role",
			`{"role":"viewer"}`,
			200,
			func(*nodetest.Answer) string { return events.UserStream(id) },
		}
	},
	"remove a member": func(me *nodetest.Client) act {
		return act{"DELETE", "/api/v1/tenants/" + me.Tenant + "/users/" + me.Join("viewer").UserID, ``, 204, tenantStream(me)}
	},
}

func invitation(c *nodetest.Client) (id string) {
	c.Service.T.Helper()
	return c.Call("POST", invitationsPath, map[string]string{"email": nodetest.Address(), "role": "viewer"}).Want(201).Object()["id"].(string)
}

func flagStream(c *nodetest.Client) func(*nodetest.Answer) string {
	return func(*nodetest.Answer) string { return events.FlagStream(c.Tenant, "k") }
}

func segmentStream(c *nodetest.Client) func(*nodetest.Answer) string {
	return func(*nodetest.Answer) string { return events.SegmentStream(c.Tenant, "beta") }
}

func userStream(c *nodetest.Client) func(*nodetest.Answer) string {
	return func(*nodetest.Answer) string { return events.UserStream(c.UserID) }
}

func tenantStream(c *nodetest.Client) func(*nodetest.Answer) string {
	return func(*nodetest.Answer) string { return events.TenantStream(c.Tenant) }
}

func (c act) sent() any {
	if c.body == "" {
		return nil
	}
	return c.body
}

func TestAChangeIsMadeOnce(t *testing.T) { nodetest.BothEngines(t, testAChangeIsMadeOnce) }

func testAChangeIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	owner := s.SignUp("root@example.com")
	ready := map[string]act{}
	clients := map[string]*nodetest.Client{}
	firsts := map[string]*nodetest.Answer{}
	done := map[string]int{}
	store := s.Store()
	for name, setUp := range acts {
		me := owner.NewTenant(name)
		c := setUp(me)
		clients[name], ready[name] = me, c
		firsts[name] = notReplayed(keyed(me, "key", c.method, c.path, c.sent()).Want(c.status))
		done[name] = facts(t, store, c.stream(firsts[name]))
		if done[name] == 0 {
			t.Errorf("%s: no facts", name)
		}
	}
	check := func(t *testing.T, name string) {
		t.Helper()
		if n := facts(t, store, ready[name].stream(firsts[name])); n != done[name] {
			t.Errorf("there are %d facts, want %d", n, done[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ready)) {
		t.Run(name, func(t *testing.T) {
			c, me, first := ready[name], clients[name], firsts[name]
			me.Service = s.In(t)
			for range 2 {
				replays(keyed(me, "key", c.method, c.path, c.sent()), first)
			}
			keyed(me, "key", c.method, c.path+"?x=y", c.sent()).Refused(422, "Idempotency-Key")
			keyed(me, "key", c.method, c.path, c.sent(), "X-Environment", "development").Refused(422, "Idempotency-Key")
			if c.body != "" {
				keyed(me, "key", c.method, c.path, c.body+" ").Refused(422, "Idempotency-Key")
			}
			check(t, name)
		})
	}
	forgetAnswers(s)
	for _, name := range slices.Sorted(maps.Keys(ready)) {
		t.Run(name+", whose node died", func(t *testing.T) {
			c, me, first := ready[name], clients[name], firsts[name]
			me.Service = s.In(t)
			if c.body != "" {
				keyed(me, "key", c.method, c.path, c.body+" ").Refused(422, "Idempotency-Key")
			}
			carriedOutAgain(keyed(me, "key", c.method, c.path, c.sent()), first)
			check(t, name)
			replays(keyed(me, "key", c.method, c.path, c.sent()), first)
			check(t, name)
		})
	}
}

// Every change honours a key: here, on missing things.
func TestEveryChangeHonoursAKey(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	me := s.SignUp("root@example.com")
	_, operations := me.Document()
	missing := strings.NewReplacer("{tenantId}", me.Tenant, "{flagKey}", "none", "{environment}", "none")
	for name, operation := range operations {
		method, path, _ := strings.Cut(name, " ")
		parameters, _ := operation["parameters"].([]any)
		takes := slices.ContainsFunc(parameters, func(p any) bool { return p.(map[string]any)["name"] == "Idempotency-Key" })
		reads := method == "GET" || strings.Contains(path, "/evaluate") || strings.HasPrefix(path, "/ofrep/") ||
			strings.HasSuffix(path, "/check") ||
			path == "/v1/logs" // OpenTelemetry's
		if takes == (reads || leastRole(name) == "anyone") {
			t.Errorf("the document says of %s that it takes a key: %v", name, takes)
		}
		if !takes || strings.HasSuffix(path, "/logout") || method == "DELETE" && strings.HasSuffix(path, "{tenantId}") {
			continue
		}
		path = missing.Replace(path)
		for before, rest, found := strings.Cut(path, "{"); found; before, rest, found = strings.Cut(path, "{") {
			_, after, _ := strings.Cut(rest, "}")
			path = before + uuid.NewString() + after
		}
		var body any
		if operation["requestBody"] != nil {
			body = `{}`
		}
		first := notReplayed(keyed(me, "k", method, path, body))
		if first.Status >= 500 {
			t.Errorf("%s: %d", name, first.Status)
			continue
		}
		replays(keyed(me, "k", method, path, body), first)
	}
}
