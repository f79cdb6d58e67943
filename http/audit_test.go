package http_test

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

const auditPath, exportPath = "/api/v1/audit", "/api/v1/audit/export"

// recordedPattern is a recorded time: UTC with microseconds and Z.
var recordedPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// trail reads all of a tenant's trail that a query finds, page by page, oldest first.
func trail(c *nodetest.Client, query string) []map[string]any {
	c.Service.T.Helper()
	list := []map[string]any{}
	for next := auditPath + query; next != ""; {
		page := c.Call("GET", next, nil).Want(200)
		list, next = append(list, page.List()...), linked(page)
	}
	slices.Reverse(list)
	return list
}

// linked is the path of the next page, empty where there is none.
func linked(page *nodetest.Answer) string {
	if match := nextLink.FindStringSubmatch(nextPage(page)); match != nil {
		return match[1]
	}
	return ""
}

// exported reads an export, by line.
func exported(c *nodetest.Client, query string) []map[string]any {
	c.Service.T.Helper()
	list := []map[string]any{}
	a := c.Call("GET", exportPath+query, nil).Want(200)
	nodetest.Same(c.Service.T, "media type", a.Header.Get("Content-Type"), "application/x-ndjson")
	for line := range strings.Lines(string(a.Body)) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			c.Service.T.Fatalf("%v in %q", err, line)
		}
		list = append(list, entry)
	}
	return list
}

func TestAuditTrail(t *testing.T) { nodetest.BothEngines(t, testAuditTrail) }

func testAuditTrail(t *testing.T) {
	nodetest.Cases{
		"every change of anything is in the trail, with what was before and after": func(t *testing.T, me *nodetest.Client) {
			tenant := "/api/v1/tenants/" + me.Tenant
			type entry struct {
				action, resource, id string
				name                 any
				environment          any
				changes              map[string]any
			}
			want := []entry{
				{
					"tenant.created",
					"tenant",
					me.Tenant,
					"every change of anything is in the trail, with what was before and after",
					nil,
					nil,
				},
				{"tenant.member_added", "member", me.UserID, me.Email, nil, map[string]any{"role": change(nil, "admin")}},
				{
					"tenant.environment_added",
					"environment",
					"",
					"production",
					"production",
					map[string]any{"name": change(nil, "production")},
				},
				{
					"tenant.environment_added",
					"environment",
					"",
					"development",
					"development",
					map[string]any{"name": change(nil, "development")},
				},
			}
			me.Call("PATCH", tenant, `{"name":"Acme"}`).Want(200)
			want = append(want,
				entry{"tenant.updated", "tenant", me.Tenant, "Acme", nil, map[string]any{"name": change(want[0].name, "Acme")}})
			for range 2 { // the second changes nothing
				me.Call("PATCH", tenant, map[string]string{"primaryEmail": "ops@example.org", "contactName": "Olive"}).Want(200)
			}
			want = append(
				want,
				entry{
					"tenant.updated",
					"tenant",
					me.Tenant,
					"Acme",
					nil,
					map[string]any{"primaryEmail": map[string]any{}, "contactName": map[string]any{}},
				},
			)

			project, path := me.CreateProject("Shop")
			me.Call("PATCH", path, `{"name":"Web shop","color":"#112233"}`).Want(200)
			me.Call("DELETE", path, nil).Want(204)
			want = append(
				want,
				entry{
					"project.created",
					"project",
					project,
					"Shop",
					nil,
					map[string]any{"name": change(nil, "Shop"), "color": change(nil, "#6b7280")},
				},
				entry{
					"project.updated",
					"project",
					project,
					"Web shop",
					nil,
					map[string]any{"name": change("Shop", "Web shop"), "color": change("#6b7280", "#112233")},
				},
				entry{"project.deleted", "project", project, "Web shop", nil, map[string]any{"name": change("Web shop", nil)}},
			)

			me.CreateFlag("k", map[string]any{"name": "Checkout"})
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"Till"}`).Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			want = append(
				want,
				entry{
					"flag.created",
					"flag",
					"k",
					"Checkout",
					nil,
					map[string]any{
						"name":         change(nil, "Checkout"),
						"type":         change(nil, "boolean"),
						"defaultValue": change(nil, false),
					},
				},
				entry{"flag.enabled", "flag", "k", "Checkout", "development", map[string]any{"enabled": change(false, true)}},
				entry{"flag.updated", "flag", "k", "Till", nil, map[string]any{"name": change("Checkout", "Till")}},
				entry{"flag.deleted", "flag", "k", "Till", nil, map[string]any{"name": change("Till", nil)}},
			)

			me.Call("POST", tenant+"/environments", `{"environment":"staging"}`).Want(201)
			me.Call("DELETE", tenant+"/environments/staging", nil).Want(204)
			want = append(
				want,
				entry{
					"tenant.environment_added",
					"environment",
					"",
					"staging",
					"staging",
					map[string]any{"name": change(nil, "staging")},
				},
				entry{
					"tenant.environment_deleted",
					"environment",
					"",
					"staging",
					"staging",
					map[string]any{"name": change("staging", nil)},
				},
			)

			email := nodetest.Address()
			pending := me.Call("POST", tenant+"/users", map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["userId"].(string)
			nodetest.Same(t, "the name of a pending member",
				me.Call("GET", auditPath+"?limit=1", nil).Want(200).List()[0]["resource"].(map[string]any)["name"], email)
			member := me.Service.SignUp(email)
			me.Call("PATCH", tenant+"/users/"+member.UserID, `{"role":"developer"}`).Want(200)
			me.Call("DELETE", tenant+"/users/"+member.UserID, nil).Want(204)
			want = append(
				want,
				entry{
					"tenant.member_invited",
					"member",
					pending,
					email,
					nil,
					map[string]any{"role": change(nil, "viewer"), "pending": change(nil, true)},
				},
				entry{
					"tenant.member_joined",
					"member",
					member.UserID,
					email,
					nil,
					map[string]any{"userId": change(pending, member.UserID), "pending": change(true, false)},
				},
				entry{
					"tenant.member_role_changed",
					"member",
					member.UserID,
					email,
					nil,
					map[string]any{"role": change("viewer", "developer")},
				},
				entry{
					"tenant.member_removed",
					"member",
					member.UserID,
					email,
					nil,
					map[string]any{"role": change("developer", nil)},
				},
			)

			client, _ := me.OAuthClient("CI", "flags:read")
			me.Call("POST", "/api/v1/oauth/clients/"+client+"/rotate", nil).Want(200)
			me.Call("DELETE", "/api/v1/oauth/clients/"+client, nil).Want(204)
			want = append(
				want,
				entry{
					"tenant.oauth_client_created",
					"oauth_client",
					client,
					"CI",
					nil,
					map[string]any{"name": change(nil, "CI"), "scopes": change(nil, []string{"flags:read"})},
				},
				entry{"tenant.oauth_secret_rotated", "oauth_client", client, "CI", nil, nil},
				entry{"tenant.oauth_client_deleted", "oauth_client", client, "CI", nil, map[string]any{"name": change("CI", nil)}},
			)

			ends := time.Date(2999, 1, 2, 3, 4, 5, 0, time.UTC)
			me.Subscribe(
				events.Subscription{ID: "sub_" + me.Tenant, Plan: events.StandardPlan, Status: events.Active, PeriodEnd: ends},
			)
			want = append(want, entry{
				"tenant.subscription_changed",
				"subscription",
				me.Tenant,
				"Acme",
				nil,
				map[string]any{
					"id":               change(nil, "sub_"+me.Tenant),
					"plan":             change("free", "standard"),
					"status":           change("none", "active"),
					"currentPeriodEnd": change(nil, "2999-01-02T03:04:05.000Z"),
				},
			})

			got := trail(me, "")
			if len(got) != len(want) {
				t.Fatalf("the trail has %d entries, want %d: %v", len(got), len(want), nodetest.Column(got, "action"))
			}
			ids := map[any]bool{}
			for i, entry := range got {
				nodetest.Members(t, "an entry", entry, "id", "timestamp", "action", "resource", "environment", "changes", "userId",
					"userName", "actorType", "reason", "requestId", "version")
				if !recordedPattern.MatchString(entry["timestamp"].(string)) {
					t.Errorf("timestamp is %v", entry["timestamp"])
				}
				resource := entry["resource"].(map[string]any)
				nodetest.Members(t, "a resource", resource, "type", "id", "name")
				if want[i].id == "" {
					want[i].id = resource["id"].(string)
				}
				nodetest.Same(t, "an entry",
					[]any{entry["action"], resource["type"], resource["id"], resource["name"], entry["environment"]},
					[]any{want[i].action, want[i].resource, want[i].id, want[i].name, want[i].environment})
				if want[i].changes != nil {
					nodetest.Same(t, want[i].action+": changes", entry["changes"], want[i].changes)
				}
				ids[entry["id"]] = true
			}
			nodetest.Same(t, "different ids", len(ids), len(got))
			if text := fmt.Sprint(got); strings.Contains(text, "ecretHash") {
				t.Error("the trail shows the hash of a secret")
			}
		},
		"an entry tells who did it, in which request and why": func(t *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:write")
			a := machine.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`, "X-Change-Reason", "why <not>").Want(201)
			created := a.Object()
			entry := me.Call("GET", auditPath+"?limit=1", nil).Want(200).List()[0]
			for name, want := range map[string]any{
				"action": "flag.created", "userId": machine.UserID, "userName": "Machine", "actorType": "client", "reason": "why <not>", "requestId": a.Header.Get("X-Request-ID"), "version": 1,
			} {
				nodetest.Same(t, name, entry[name], want)
			}
			if made := created["createdAt"].(string); entry["timestamp"].(string) < strings.TrimSuffix(made, "Z") {
				t.Errorf("it was recorded at %s and made at %s", entry["timestamp"], made)
			}
			nodetest.Same(t, "the history's entry", me.History("k", "")[0]["id"], entry["id"])
			machine.Call("GET", auditPath, nil).Refused(403)
		},
	}.Run(t)
}

func TestNamesInTheAuditTrail(t *testing.T) {
	nodetest.Cases{
		"people are found by the name that the entry shows": func(t *testing.T, me *nodetest.Client) {
			users := "/api/v1/tenants/" + me.Tenant + "/users"
			email, waiting := nodetest.Address(), nodetest.Address()
			invited := me.Call("POST", users, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["userId"]
			pending := me.Call("POST", users, map[string]string{"email": waiting, "role": "viewer"}).Want(201).Object()["userId"]
			joined := me.Service.SignUp(email)
			me.Call("DELETE", users+"/"+joined.UserID, nil).Want(204)
			stranger := me.Service.SignUp(nodetest.Address())
			for search, want := range map[string][]any{
				strings.ToUpper(email): {invited, joined.UserID, joined.UserID}, waiting: {pending}, stranger.Email: {},
			} {
				query := "?q=" + url.QueryEscape(search)
				for _, list := range [][]map[string]any{trail(me, query), exported(me, query)} {
					found := []any{}
					for _, e := range list {
						found = append(found, e["resource"].(map[string]any)["id"])
					}
					nodetest.Same(t, "found by "+search, found, want)
				}
			}
		},
		"a pending member is called what the list of members at that time calls them": func(t *testing.T, me *nodetest.Client) {
			users := "/api/v1/tenants/" + me.Tenant + "/users"
			invite := func(email string) string {
				return me.Call("POST", users, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["userId"].(string)
			}
			email := nodetest.Address()
			joining, withdrawn := invite(email), invite(nodetest.Address())
			then := atNow()
			joined := me.Service.SignUp(email)
			me.Call("DELETE", users+"/"+withdrawn, nil).Want(204)
			people := me.Call("GET", users+"?"+then, nil).Want(200).List()
			for id, want := range map[string][]any{joining: {email, ""}, withdrawn: {"", "withdrawn invitation"}} {
				member := people[slices.Index(nodetest.Column(people, "userId"), any(id))]
				nodetest.Same(t, "the member", []any{member["email"], member["displayName"]}, want)
				name := want[0]
				if name == "" {
					name = want[1]
				}
				for _, list := range [][]map[string]any{trail(me, "?resourceId="+id), exported(me, "?resourceId="+id)} {
					for _, e := range list {
						nodetest.Same(t, e["action"].(string), e["resource"], map[string]any{"type": "member", "id": id, "name": name})
					}
				}
			}
			erase(t, me.Service, joined.UserID)
			for _, e := range trail(me, "?resourceId="+joining) {
				nodetest.Same(t, "who joined and was erased", e["resource"].(map[string]any)["name"], "erased user")
			}
		},
	}.Run(t)
}

func TestAuditTrailIsFiltered(t *testing.T) {
	nodetest.Cases{
		"the filters leave out others, alone and together": func(t *testing.T, me *nodetest.Client) {
			developer := me.Join("developer")
			me.CreateFlag("cafe", map[string]any{"name": "Café"})
			me.CreateFlag("tea", map[string]any{"name": "Green TEA"})
			me.Call("POST", nodetest.FlagPath("tea", "/enable"), nil, "X-Environment", "development").Want(200)
			developer.Call("POST", nodetest.FlagPath("tea", "/enable"), nil, "X-Change-Reason", "The Café opens").Want(200)
			developer.CreateProject("tea")
			all := trail(me, "")
			for query, keep := range map[string]func(e, resource map[string]any) bool{
				"action=flag.enabled":                 func(e, _ map[string]any) bool { return e["action"] == "flag.enabled" },
				"userId=" + developer.UserID:          func(e, _ map[string]any) bool { return e["userId"] == developer.UserID },
				"resourceType=flag":                   func(_, r map[string]any) bool { return r["type"] == "flag" },
				"resourceType=environment":            func(_, r map[string]any) bool { return r["type"] == "environment" },
				"resourceType=invitation":             func(_, _ map[string]any) bool { return false },
				"resourceId=tea":                      func(_, r map[string]any) bool { return r["id"] == "tea" },
				"resourceId=tea&resourceType=project": func(_, _ map[string]any) bool { return false },
				"environment=development":             func(e, _ map[string]any) bool { return e["environment"] == "development" },
				"environment=development&action=flag.enabled": func(e, _ map[string]any) bool {
					return e["environment"] == "development" && e["action"] == "flag.enabled"
				},
				"userId=" + me.UserID + "&resourceType=flag&action=flag.created": func(e, _ map[string]any) bool { return e["action"] == "flag.created" },
				"q=tEA":                        func(_, r map[string]any) bool { return strings.Contains(strings.ToLower(fmt.Sprint(r)), "tea") },
				"q=" + url.QueryEscape("café"): func(e, r map[string]any) bool { return r["id"] == "cafe" || e["reason"] != "" },
				"q=" + developer.UserID:        func(e, r map[string]any) bool { return e["userId"] == developer.UserID || r["id"] == developer.UserID },
				"q=%25":                        func(_, _ map[string]any) bool { return false },
				"q=tea&userId=" + developer.UserID: func(e, r map[string]any) bool {
					return e["userId"] == developer.UserID && strings.Contains(strings.ToLower(fmt.Sprint(r)), "tea")
				},
			} {
				var want []any
				for _, e := range all {
					if keep(e, e["resource"].(map[string]any)) {
						want = append(want, e["id"])
					}
				}
				nodetest.Same(t, query, nodetest.Column(trail(me, "?limit=1&"+query), "id"), append([]any{}, want...))
				nodetest.Same(t, "the export of "+query, nodetest.Column(exported(me, "?"+query), "id"), append([]any{}, want...))
			}
			for query, field := range map[string]string{
				"from=yesterday": "from", "to=1": "to", "user=x": "user", "resourceType=pet": "resourceType", "limit=0": "limit", "limit=1001": "limit", "offset=1": "offset",
				"q=" + strings.Repeat("x", 201): "q", "cursor=x": "cursor",
			} {
				me.Call("GET", auditPath+"?"+query, nil).Refused(422, field)
			}
			for query, field := range map[string]string{"from=yesterday": "from", "format=xml": "format", "after=x": "after", "after=-2": "after", "limit=1": "limit"} {
				me.Call("GET", exportPath+"?"+query, nil).Refused(422, field)
			}
			me.Call("GET", auditPath+"?q=%00", nil).Refused(400)
			for _, path := range []string{auditPath, exportPath} {
				a := me.Call("GET", path+"?from=zz&to=2026-01-02T03:04:51,5Z&action=a&action=b", nil).
					Refused(422, "from", "to", "action")
				wrong := a.Object()["errors"].(map[string]any)
				const words = "must be a time of RFC 3339, such as 2026-03-14T15:09:26.535Z"
				nodetest.Same(t, "what "+path+" says of times", []any{wrong["from"], wrong["to"]}, []any{words, words})
			}
		},
		"a trail can be cut by time": func(t *testing.T, me *nodetest.Client) {
			for i := range 5 {
				me.CreateFlag(fmt.Sprint("k", i), nil)
			}
			all := trail(me, "")
			for _, e := range all {
				at := e["timestamp"].(string)
				var before, since []any
				for _, other := range all {
					if other["timestamp"].(string) < at {
						before = append(before, other["id"])
					} else {
						since = append(since, other["id"])
					}
				}
				nodetest.Same(t, "before", nodetest.Column(trail(me, "?limit=3&to="+at), "id"), append([]any{}, before...))
				nodetest.Same(t, "since", nodetest.Column(trail(me, "?limit=3&from="+at), "id"), append([]any{}, since...))
				nodetest.Same(t, "the export since", nodetest.Column(exported(me, "?from="+at), "id"), append([]any{}, since...))
				nodetest.Same(t, "both", trail(me, "?from="+at+"&to="+at), []any{})
			}
			nodetest.Same(t, "in the future", trail(me, "?from=2999-01-01T00:00:00Z"), []any{})
			nodetest.Same(t, "up to the future", len(trail(me, "?to=2999-01-01T00:00:00%2B01:00")), len(all))
		},
	}.Run(t)
}

func TestAuditTrailIsReadPieceByPiece(t *testing.T) {
	nodetest.BothEngines(t, testAuditTrailIsReadPieceByPiece)
}

func testAuditTrailIsReadPieceByPiece(t *testing.T) {
	nodetest.Cases{
		"a cursor is good for one trail": func(_ *testing.T, me *nodetest.Client) {
			next := linked(me.Call("GET", auditPath+"?limit=2", nil).Want(200))
			me.Call("GET", next, nil).Want(200)
			me.NewTenant("other").Call("GET", next, nil).Refused(422, "cursor")
			for _, text := range []string{me.Tenant, me.Tenant + " ", me.Tenant + " x", me.Tenant + " -1", me.Tenant + " 1 1", me.Tenant + " 99999999999999999999"} {
				me.Call("GET", auditPath+"?cursor="+base64.RawURLEncoding.EncodeToString([]byte(text)), nil).Refused(422, "cursor")
			}
			me.Call("GET", auditPath+"?cursor="+base64.RawURLEncoding.EncodeToString([]byte(me.Tenant+" 9223372036854775807")), nil).
				Want(200)
		},
		"an export goes on after a position, in either format": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "string", "defaultValue": "a \"quoted\",\nvalue", "name": "=1+1, \"x\""})
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Change-Reason", "one, \"two\"").Want(200)
			pages, all := trail(me, "?limit=3"), exported(me, "")
			for i, entry := range all {
				nodetest.Same(t, "position", entry["position"], i)
				delete(entry, "position")
			}
			nodetest.Same(t, "the export", all, pages)
			for after := range all {
				rest := exported(me, fmt.Sprint("?after=", after))
				nodetest.Same(t, "the rest", nodetest.Column(rest, "id"), nodetest.Column(all[after+1:], "id"))
			}
			a := me.Call("GET", exportPath+"?format=csv", nil).Want(200)
			nodetest.Same(t, "headers", []string{a.Header.Get("Content-Type"), a.Header.Get("Content-Disposition")},
				[]string{"text/csv", `attachment; filename="audit.csv"`})
			lines, err := csv.NewReader(strings.NewReader(string(a.Body))).ReadAll()
			if err != nil || len(lines) != len(all)+1 ||
				strings.Join(
					lines[0], " ",
				) != "position id timestamp action resourceType resourceId resourceName environment userId userName actorType reason requestId version changes" {
				t.Fatalf("%v, %v", lines, err)
			}
			goesOn, wholeLines := me.Call("GET", exportPath+"?format=csv&after=1", nil).
				Want(200),
				strings.SplitAfter(string(a.Body), "\n")
			nodetest.Same(t, "what goes on, appended to what there is", strings.Join(wholeLines[:3], "")+string(goesOn.Body),
				string(a.Body))
			formulas := 0
			for i, line := range lines[1:] {
				e := all[i]
				resource := e["resource"].(map[string]any)
				var changes any
				if err := json.Unmarshal([]byte(line[14]), &changes); err != nil {
					t.Fatal(err)
				}
				environment := e["environment"]
				if environment == nil {
					environment = ""
				}
				name := resource["name"].(string)
				if strings.HasPrefix(name, "=") { // which a spreadsheet would take for a formula
					name, formulas = "'"+name, formulas+1
				}
				nodetest.Same(t, "changes", changes, e["changes"])
				nodetest.Same(t, "a line", line[:14], []any{
					fmt.Sprint(i),
					e["id"],
					e["timestamp"],
					e["action"],
					resource["type"],
					resource["id"],
					name,
					environment,
					e["userId"],
					e["userName"],
					e["actorType"],
					e["reason"],
					e["requestId"],
					fmt.Sprint(e["version"]),
				})
			}
			nodetest.Same(t, "lines", len(lines)-1, len(all))
			nodetest.Same(t, "names that begin as formulas do", formulas > 0, true)
			nodetest.Same(t, "past the end", exported(me, "?after=9223372036854775807"), []any{})
			head := me.Call("HEAD", exportPath, nil).Want(200)
			nodetest.Same(t, "HEAD", len(head.Body), 0)
		},
	}.Run(t)
}

func TestWhoMayReadTheAuditTrail(t *testing.T) {
	nodetest.Cases{
		"whoever is no member reads nothing": func(_ *testing.T, me *nodetest.Client) {
			stranger := withToken(me, me.Service.SignUp(nodetest.Address()).Token)
			for _, path := range []string{auditPath, exportPath} {
				stranger.Call("GET", path, nil, "X-Tenant-ID", me.Tenant).Refused(403)
				me.Service.Anonymous().Call("GET", path, nil).Refused(401)
				me.Join("viewer").Call("GET", path, nil).Want(200)
			}
			me.Call("GET", "/api/v1/admin/audit", nil).Refused(403)
		},
	}.Run(t)
}

// Whatever is written meanwhile: a walk along the links, of pages of any size, finds each entry from where it began
// exactly once, and an export all up to its own end.
func TestPagesNeitherSkipNorRepeatWhileFactsArrive(t *testing.T) {
	nodetest.BothEngines(t, testPagesNeitherSkipNorRepeatWhileFactsArrive)
}

func testPagesNeitherSkipNorRepeatWhileFactsArrive(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	other := me.NewTenant("other")
	const writers = 4
	for i := range writers {
		me.CreateEnabledFlag(fmt.Sprint("k", i), nil)
		other.CreateEnabledFlag(fmt.Sprint("k", i), nil)
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for on := false; ; on = !on {
				select {
				case <-stop:
					return
				default:
				}
				for _, c := range []*nodetest.Client{me, other} {
					if r := c.Attempt(
						"POST", nodetest.FlagPath(fmt.Sprint("k", i), map[bool]string{true: "/enable", false: "/disable"}[on]), "",
					); r.Status != 200 {
						t.Error(r)
					}
				}
			}
		})
	}
	found := func(query string) []any { return nodetest.Column(exported(me, "?"+query), "id") }
	type walk struct {
		query           string
		paged, exported []any
	}
	var walks []walk
	for range 2 {
		for _, query := range []string{"", "action=flag.enabled", "resourceId=k1", "q=k2", "resourceType=flag&userId=" + me.UserID} {
			w := walk{query: query}
			for next := auditPath + "?limit=7&" + query; next != "" && len(w.paged) < 100; {
				page := me.Call("GET", next, nil).Want(200)
				w.paged = append(w.paged, nodetest.Column(page.List(), "id")...)
				next = anyLimit.ReplaceAllString(linked(page), fmt.Sprint("limit=", 1+rand.IntN(20)))
			}
			w.exported = found(query)
			walks = append(walks, w)
		}
	}
	close(stop)
	writing.Wait()
	for _, w := range walks {
		all := found(w.query)
		if len(w.exported) == 0 || len(all) < len(w.exported) || !slices.Equal(all[:len(w.exported)], w.exported) {
			t.Errorf("the export of %q is no beginning of what there is", w.query)
		}
		slices.Reverse(all)
		start := slices.Index(all, w.paged[0])
		if start < 0 || !slices.Equal(all[start:min(start+len(w.paged), len(all))], w.paged) {
			t.Errorf("the pages of %q skip or repeat entries", w.query)
		}
	}
}

var anyLimit = regexp.MustCompile(`limit=\d+`)

// The platform reads the trails of all, in one order, those of deleted tenants among them.
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
