package http_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

// request is a read that can ask about the past.
type request struct {
	path, environment string
	context           string // the context of an evaluation
	key               string // its flag; empty if it can only be asked by time
	lasting           bool   // its response never changes, so it is repeated unchanged
	first             int    // the first version of a page of versions; 0 for other requests
}

// answered is the response to a request.
type answered struct {
	status int
	total  string
	body   string // of a 200, without people's data from keepings
}

// useOfFlag lists the usage members that only current responses have.
var useOfFlag = regexp.MustCompile(
	`,"lastEvaluatedAt":(null|"[^"]*"),"lastPrefetchedAt":(null|"[^"]*"),"lastRequiredAt":(null|"[^"]*"),"lifecycle":"[a-z]+"(,"inProcess":\{"supported":(true,"reason":null|false,"reason":"[^"]*(\\.[^"]*)*")\})?`,
)

// ask makes a request about now, or about the time or version of a query.
func ask(c *nodetest.Client, r request, moment string) answered {
	c.Service.T.Helper()
	target := r.path
	if r.first > 0 {
		target += fmt.Sprintf("?limit=3&offset=%d", newestVersion(c, r.key)-r.first)
	}
	if moment != "" && strings.Contains(target, "?") {
		target += "&" + moment
	} else if moment != "" {
		target += "?" + moment
	}
	method, body := "GET", any(nil)
	if r.context != "" {
		method, body = "POST", r.context
	}
	a := c.Answered(method, target, body, "X-Environment", r.environment)
	got := answered{status: a.Status, total: a.Header.Get("X-Total-Count")}
	if r.first > 0 {
		got.total = "" // which grows
	}
	if a.Status != 200 {
		return got
	}
	if got.body = useOfFlag.ReplaceAllString(string(a.Body), ""); strings.Contains(r.path, "/users") {
		members := a.List()
		for _, m := range members {
			delete(m, "email")
			delete(m, "displayName")
			delete(m, "lastAccessedAt")
		}
		got.body = fmt.Sprint(members)
	}
	return got
}

// pastAnswer is a request with its response, time, and the version of its flag at that time, if any.
type pastAnswer struct {
	request
	answer      answered
	at, version string
}

var revisionPattern = regexp.MustCompile(`"revision":"([^"]*)"`)

// revision returns the revision of an evaluation of one flag as a parameter; empty of other answers.
func (n pastAnswer) revision() string {
	found := revisionPattern.FindStringSubmatch(n.answer.body)
	if n.context == "" || n.key == "" || found == nil {
		return ""
	}
	return "revision=" + url.QueryEscape(found[1])
}

// evolving is a tenant that changes, with its responses in between.
type evolving struct {
	me       *nodetest.Client
	noted    []pastAnswer
	members  []string
	projects []string
	types    map[string]string // of flags, by key
	clients  []string
	times    []string // past times
	// throughProject counts the changes of flags through the path of a project.
	throughProject int
	plans          int // number of plans set
	descriptions   int // number of changed descriptions
	leftProject    int // number of flags that left a project
	// environmentsSince is when an environment was last created or deleted: older versions do not tell which environments
	// exist now.
	environmentsSince time.Time
}

var (
	someKeys  = []string{"a", "b", "c.1", "B-2"}
	someNames = []string{"production", "production", "production", "production", "development", "qa"}
	someTypes = []string{"boolean", "string", "number", "json"}
)

// countedKinds are texts in the requests of some kinds, whose responses are counted in the log.
var countedKinds = []string{`"flagKeys"`, "/versions?", "/versions/", "/diff?", "/rules", "explain="}

var allReasons = []evaluation.Reason{evaluation.Archived, evaluation.Off, evaluation.RuleMatch, evaluation.Fallthrough}

// draws makes requests, valid or not.
type draws struct{ *rapid.T }

func (d draws) of(what string, from ...string) string { return rapid.SampledFrom(from).Draw(d.T, what) }

// value draws a value that usually fits the type of a flag.
func (d draws) value(kind string) string {
	fitting := map[string][]string{
		"boolean": {
			"true",
			"false",
		},
		"string": {`"x"`, `"\u00e9"`, `""`},
		"number": {"1.50", "9007199254740993", "-0"},
		"json":   {`{"b": 1, "a": [null]}`, `[ ]`, "null", "1e2"},
	}
	if kind == "" || rapid.IntRange(0, 9).Draw(d.T, "fits") == 0 {
		kind = d.of("another type", someTypes...)
	}
	return d.of("value", fitting[kind]...)
}

func (d draws) weight() string { return d.of("weight", "0", "1", "12.5", "80") }

// serve draws what a rule serves: a variation of its flag, a split, or a value.
func (d draws) serve(kind string, variations []string) string {
	variation := d.of("variation", append(variations, "none")...)
	switch d.of("serve", "variation", "variation", "variation", "rollout", "rollout", "value") {
	case "variation":
		return fmt.Sprintf(`{"variationId":%q}`, variation)
	case "rollout":
		other := d.of("other variation", append(variations, variation)...)
		return fmt.Sprintf(`{"rollout":[{"variationId":%q,"weight":%s},{"variationId":%q,"weight":2}],"bucketBy":%q}`,
			variation, d.weight(), other, d.of("unit", "targetingKey", "plan"))
	default:
		return fmt.Sprintf(`{"value":%s}`, d.value(kind))
	}
}

func (d draws) rules(kind string, variations []string) string {
	var rules []string
	for range rapid.IntRange(0, 3).Draw(d.T, "rules") {
		condition := d.of("condition", "", `{"attribute":"plan","op":"in","values":["pro","\u00e9"]}`,
			`{"attribute":"seats","op":"gt","values":[1.0]}`, `{"attribute":"plan","op":"exists","negate":true}`)
		rules = append(
			rules,
			fmt.Sprintf(`{"name":%q,"conditions":[%s],"serve":%s}`, d.of("rule", "r", "<é>"), condition,
				d.serve(kind, variations)),
		)
	}
	return fmt.Sprintf(`{"rules":[%s]}`, strings.Join(rules, ","))
}

// changeFlag draws and makes a change of a flag, valid or not.
func (e *evolving) changeFlag(rt *rapid.T, me *nodetest.Client) *nodetest.Answer {
	d := draws{rt}
	key, environment := d.of("key", someKeys...), d.of("environment", someNames...)
	text := rapid.StringMatching(`[a-cX<é ]{1,4}`).Draw(rt, "text")
	send := func(method, path, body string) *nodetest.Answer {
		if body == "" {
			return me.Call(method, path, nil, "X-Environment", environment)
		}
		return me.Lenient().Call(method, path, body, "X-Environment", environment)
	}
	call := func(method, tail, body string) *nodetest.Answer {
		return send(method, nodetest.FlagPath(key, tail), body)
	}
	// either makes a call directly or through the path of a project that usually contains the flag.
	either := func(method, tail, body string) *nodetest.Answer {
		if !rapid.Bool().Draw(rt, "through a project") {
			return call(method, tail, body)
		}
		project := d.of("project of the path", append(e.projects, "none")...)
		if a := call("GET", "", ""); a.Status == 200 && rapid.IntRange(0, 3).Draw(rt, "another project") > 0 {
			if its, ok := a.Object()["projectId"].(string); ok {
				project = its
			}
		}
		a := send(method, nodetest.ProjectFlagsPath(project, "/", key, tail), body)
		if a.Status < 300 {
			e.throughProject++
		}
		return a
	}
	variations := func() (ids []string) {
		a := call("GET", "/variations", "")
		if a.Status != 200 {
			return nil
		}
		for _, id := range nodetest.Column(a.List(), "id") {
			ids = append(ids, id.(string))
		}
		return ids
	}
	create := func(path string) *nodetest.Answer {
		flagType := d.of("type", someTypes...)
		a := me.Lenient().
			Call("POST", path, fmt.Sprintf(`{"key":%q,"type":%q,"defaultValue":%s,"description":%q,"tags":[%q],"flag_variations":[{"name":"1","value":%s,"weight":%s}]}`,
				key, flagType, d.value(flagType), text+"?", text, d.value(flagType), d.weight()))
		if a.Status == 201 {
			e.types[key] = flagType
		}
		return a
	}
	switch kind := d.of("change of a flag",
		"create", "create in project", "create in project", "update", "status", "default", "enable", "enable", "enable", "disable", "add variation", "change variation", "remove variation",
		"rules", "rules", "rules", "rules", "fallthrough", "no fallthrough", "permanent", "owner", "owner", "links", "off serves", "delete", "revert", "revert", "revert to a time",
		"description", "description", "description",
		"leave project", "leave project", "leave project", "leave project", "leave project"); kind {
	case "create", "create in project":
		path := "/api/v1/flags"
		if kind != "create" {
			first := e.projects[0] // never deleted
			path = nodetest.ProjectFlagsPath(d.of("project", append(e.projects, first, first, "none")...))
		}
		return create(path)
	case "update":
		return either("PATCH", "", fmt.Sprintf(`{"name":%q,"tags":["t",%q]}`, text+"!", text))
	case "status":
		return either("PATCH", "",
			fmt.Sprintf(`{"status":%q}`, d.of("status", "active", "active", "active", "inactive", "archived")))
	case "default":
		return either("PATCH", "", fmt.Sprintf(`{"defaultValue":%s,"description":null}`, d.value(e.types[key])))
	case "description":
		a := either("PATCH", "", fmt.Sprintf(`{"description":%q}`, text))
		if a.Status == 200 {
			e.descriptions++
		}
		return a
	case "leave project": // as the service has it leave a project that is gone; a revert brings it back
		a := call("GET", "", "")
		if a.Status != 200 {
			return create(nodetest.ProjectFlagsPath(e.projects[0]))
		}
		if a.Object()["projectId"] == nil {
			return call("DELETE", "", "")
		}
		ref := commands.FlagRef{TenantID: me.Tenant, Key: key, ProjectID: a.Object()["projectId"].(string)}
		_, _, err := writer.Do(rt.Context(), me.Service.Node.API.Writer, writer.BySystem("test"),
			commands.LeaveProject{FlagRef: ref})
		if err != nil {
			rt.Fatalf("leave a project: %v", err)
		}
		me.Service.Eventually("the flag has left its project", func() bool {
			a := call("GET", "", "")
			return a.Status != 200 || a.Object()["projectId"] == nil
		})
		e.leftProject++
		return call("GET", "", "").Want(200)
	case "enable", "disable":
		return either("POST", "/"+kind, "")
	case "add variation":
		return call("POST", "/variations",
			fmt.Sprintf(`{"name":%q,"value":%s,"weight":%s}`, text+"!", d.value(e.types[key]), d.weight()))
	case "change variation":
		return call("PATCH", "/variations/"+d.of("variation", append(variations(), "none")...),
			fmt.Sprintf(`{"value":%s,"weight":%s}`, d.value(e.types[key]), d.weight()))
	case "remove variation":
		return call("DELETE", "/variations/"+d.of("variation", append(variations(), "none")...), "")
	case "rules":
		return call("PUT", "/rules", d.rules(e.types[key], variations()))
	case "fallthrough":
		return call("PUT", "/fallthrough", fmt.Sprintf(`{"serve":%s}`, d.serve(e.types[key], variations())))
	case "no fallthrough":
		return call("PUT", "/fallthrough", `{"serve":null}`)
	case "permanent":
		return call("PATCH", "", fmt.Sprintf(`{"permanent":%s}`, d.of("permanent", "true", "false")))
	case "owner":
		return call("PATCH", "", fmt.Sprintf(`{"owner":%q}`, d.of("owner", append(e.members, me.UserID)...)))
	case "links":
		return call("PATCH", "", fmt.Sprintf(`{"links":[{"title":%q,"url":"https://example.com/"}]}`, text+"!"))
	case "off serves":
		return call("PATCH", "", fmt.Sprintf(`{"offServes":%q}`, d.of("off serves", "value", "code")))
	case "delete":
		return either("DELETE", "", "")
	case "revert to a time":
		return call("POST", "/revert", fmt.Sprintf(`{"at":%q}`, d.of("time", e.times...)))
	default:
		return call("POST", "/revert", fmt.Sprintf(`{"version":%d}`, rapid.IntRange(1, 12).Draw(rt, "version")))
	}
}

// changeTenant draws and makes a change of anything else, valid or not.
func (e *evolving) changeTenant(rt *rapid.T, me *nodetest.Client) *nodetest.Answer {
	d := draws{rt}
	tenant := "/api/v1/tenants/" + me.Tenant
	project, member := d.of("project", append(e.projects, "none")...), d.of("member", append(e.members, "none")...)
	role, text := d.of("role", "admin", "developer", "viewer"), d.of("text", "a", "b<")
	environment := d.of("environment to make or delete", "development", "qa", "qa")
	switch d.of(
		"change of the tenant", "new project", "update project", "delete project", "environment", "no environment", "arrangement", "invite",
		"role", "join", "remove", "update", "client", "no client", "rotate", "plan", "another tenant", "revert",
		"revert in an environment", "revert in a project",
	) {
	case "new project":
		a := me.Call("POST", "/api/v1/projects", map[string]any{"name": text + "!", "description": text})
		e.projects = append(e.projects, a.Want(201).Object()["id"].(string))
		return a
	case "update project":
		return me.Call("PATCH", "/api/v1/projects/"+project, map[string]any{"name": text + "?", "color": "#0ea5e9"})
	case "delete project":
		gone := d.of("project to delete", append(e.projects[1:], "none")...)
		return me.Call("DELETE", "/api/v1/projects/"+gone, nil)
	case "environment":
		a := me.Call("POST", tenant+"/environments", map[string]any{"environment": environment})
		e.environmentsSince = time.Now()
		return a
	case "no environment":
		a := me.Call("DELETE", tenant+"/environments/"+environment, nil)
		e.environmentsSince = time.Now()
		return a
	case "arrangement":
		var arranged []any
		for _, name := range me.Call("GET", tenant+"/environments", nil).Want(200).JSON().([]any) {
			arranged = append([]any{map[string]any{"name": name, "color": d.of("color", "#0ea5e9", "#808080")}}, arranged...)
		}
		return me.Call("PUT", tenant+"/environments/settings", map[string]any{"environments": arranged})
	case "update":
		return me.Call("PATCH", tenant, map[string]any{"name": text + "!"})
	case "client":
		id, _ := me.OAuthClient(text, "flags:read")
		e.clients = append(e.clients, id)
		return me.Call("GET", "/api/v1/oauth/clients", nil)
	case "no client":
		return me.Call("DELETE", "/api/v1/oauth/clients/"+d.of("client", append(e.clients, "none")...), nil)
	case "rotate":
		return me.Call("POST", "/api/v1/oauth/clients/"+d.of("client", append(e.clients, "none")...)+"/rotate", nil)
	case "plan":
		e.plans++
		plan := rapid.SampledFrom([]events.Plan{events.StandardPlan, events.PremiumPlan, events.EnterprisePlan}).
			Draw(rt, "plan")
		me.Subscribe(
			events.Subscription{
				ID:   "sub_" + me.Tenant,
				Plan: plan,
				Status: rapid.SampledFrom([]events.SubscriptionStatus{events.Active, events.PastDue, events.Canceled}).
					Draw(rt, "status of the subscription"),
			},
		)
		return me.Call("GET", tenant, nil).Want(200)
	case "another tenant": // comes and goes, with flags of the same keys: nothing of this one is its own
		other := me.NewTenant(text)
		other.CreateEnabledFlag(d.of("flag of another tenant", someKeys...), nil)
		return other.Call("DELETE", "/api/v1/tenants/"+other.Tenant, nil).Want(204)
	case "revert in a project":
		return me.Call("POST", revertPath, map[string]any{"at": d.of("time", e.times...), "projectId": project})
	case "revert":
		return me.Call("POST", revertPath, map[string]any{"at": d.of("time", e.times...)})
	case "revert in an environment":
		return me.Call("POST", revertPath, map[string]any{"at": d.of("time", e.times...), "environment": environment})
	case "invite":
		a := me.Call("POST", tenant+"/users", map[string]any{"email": nodetest.Address(), "role": role})
		e.members = append(e.members, a.Want(201).Object()["userId"].(string))
		return a
	case "role":
		return me.Call("PATCH", tenant+"/users/"+member, map[string]any{"role": role})
	case "join":
		e.members = append(e.members, me.Join(events.Role(role)).UserID)
		return me.Call("PATCH", tenant+"/users/"+e.members[len(e.members)-1], map[string]any{"role": role})
	default:
		return me.Call("DELETE", tenant+"/users/"+member, nil)
	}
}

// change makes a drawn change, and waits until the read models show it.
func (e *evolving) change(rt *rapid.T, me *nodetest.Client) *nodetest.Answer {
	change := e.changeFlag
	if rapid.IntRange(0, 2).Draw(rt, "whose") == 0 {
		change = e.changeTenant
	}
	a := change(rt, me)
	if a.Status >= 500 {
		rt.Fatalf("%s: %d: %s", a.Call, a.Status, a.Body)
	}
	// lists may not show it yet, but wait for it if they are asked for a time
	if a.Header.Get("Preference-Applied") != "" {
		me.Service.Eventually("the lists show the change", func() bool {
			return me.Call("GET", "/api/v1/projects?"+atNow(), nil).Status == 200 &&
				me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/users?"+atNow(), nil).Status == 200
		})
	}
	return a
}

// versionOf returns the version of a flag as a parameter; empty without such a flag, or if the version is older than
// the last change of environments.
func (e *evolving) versionOf(me *nodetest.Client, key, environment string) string {
	if me.Call("GET", nodetest.FlagPath(key), nil).Status != 200 {
		return ""
	}
	newest := me.Call("GET", nodetest.FlagPath(key, "/versions?limit=1"), nil).Want(200).List()[0]
	at, err := time.Parse(time.RFC3339Nano, newest["timestamp"].(string))
	if err != nil {
		me.Service.T.Fatal(err)
	}
	if environment != events.DefaultEnvironment && !at.After(e.environmentsSince) {
		return ""
	}
	return fmt.Sprint("version=", newest["version"])
}

// newestVersion returns the newest version of a flag's key, or 0.
func newestVersion(me *nodetest.Client, key string) (version int) {
	me.Service.T.Helper()
	a := me.Call("GET", nodetest.FlagPath(key, "/versions?limit=1"), nil)
	if a.Status == 404 {
		return 0
	}
	version, err := strconv.Atoi(a.Want(200).Header.Get("X-Total-Count"))
	if err != nil {
		me.Service.T.Fatal(err)
	}
	return version
}

// drawLasting draws a request about versions of a flag; false if it has none.
func (e *evolving) drawLasting(d draws, me *nodetest.Client, key string) (r request, drawn bool) {
	newest := newestVersion(me, key)
	if newest == 0 {
		return r, false
	}
	version := rapid.IntRange(1, newest)
	from, to := version.Draw(d.T, "a version"), version.Draw(d.T, "another version")
	r = request{key: key, lasting: true}
	switch d.of("lasting", "version", "diff", "diff by time", "versions") {
	case "version":
		r.path = nodetest.FlagPath(key, fmt.Sprint("/versions/", from))
	case "diff":
		r.path = nodetest.FlagPath(key, fmt.Sprintf("/diff?from=%d&to=%d", from, to))
	case "diff by time":
		r.path = nodetest.FlagPath(key,
			fmt.Sprintf("/diff?from=%s&to=%d", url.QueryEscape(d.of("time to compare", e.times...)), to))
	default:
		r.path, r.first = nodetest.FlagPath(key, "/versions"), from
	}
	return r, true
}

// note makes drawn requests and records the responses.
func (e *evolving) note(rt *rapid.T, me *nodetest.Client) {
	d := draws{rt}
	tenant := "/api/v1/tenants/" + e.me.Tenant
	project, environment, key := d.of(
		"project to list",
		append(e.projects, "none")...), d.of(
		"environment to ask about",
		someNames...), d.of(
		"flag to ask about",
		someKeys...)
	lists := []string{
		"/api/v1/flags",
		"/api/v1/flags?" + d.of("query", "limit=2", "limit=1&offset=1", "enabled=true", "enabled=false&limit=1", "tag=t",
			"q=B", "status=active", "type=json", "projectId="+project),
		nodetest.ProjectFlagsPath(project),
		"/api/v1/projects",
		"/api/v1/projects?limit=1",
		"/api/v1/projects/" + project,
		tenant + "/users",
		tenant + "/users?limit=2&offset=1",
		tenant + "/environments",
	}
	var asks []request
	for _, path := range rapid.SliceOfN(rapid.SampledFrom(lists), 1, 2).Draw(rt, "lists") {
		named := environment
		if !strings.HasPrefix(path, "/api/v1/flags") {
			named = "" // the call is about no environment
		}
		asks = append(asks, request{path: path, environment: named})
	}
	context := d.of("context", `{}`, `{"targetingKey":"u1"}`,
		`{"targetingKey":"u2","attributes":{"plan":"pro","seats":2}}`, `{"targetingKey":"u3","attributes":{"plan":"é"}}`)
	many := d.of("flags to evaluate", "", `"flagKeys":["a","none","B-2"]`, `"flagKeys":["c.1","c.1"]`)
	if context != "{}" && many != "" {
		many += ","
	}
	asks = append(asks, request{path: manyPath, environment: environment, context: "{" + many + context[1:]})
	for _, tail := range []string{"/evaluate", d.of("of the flag", "", "/variations", "/rules", "/evaluate?explain=true")} {
		r := request{path: nodetest.FlagPath(key, tail), environment: environment, key: key}
		if strings.HasPrefix(tail, "/evaluate") {
			r.context = context
		}
		asks = append(asks, r)
	}
	if r, drawn := e.drawLasting(d, me, key); drawn {
		asks = append(asks, r)
	}
	version := e.versionOf(me, key, environment)
	first := len(e.noted)
	for _, r := range asks {
		n := pastAnswer{request: r, answer: ask(me, r, "")}
		if r.key != "" && !r.lasting {
			n.version = version
		}
		e.noted = append(e.noted, n)
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for i := range e.noted[first:] {
		if n := &e.noted[first+i]; !n.lasting {
			n.at = "at=" + url.QueryEscape(now)
		}
	}
	e.times = append(e.times, now)
}

var ownerPattern = regexp.MustCompile(`"owner":[^,]*,`)

// check repeats the recorded requests.
func (e *evolving) check(t rapid.TB, me *nodetest.Client, n pastAnswer) {
	for _, moment := range []string{n.at, n.version, n.revision()} {
		if moment == "" && !n.lasting {
			continue
		}
		want, got := n.answer, ask(me, n.request, moment)
		if moment == n.version { // its owner may have left the tenant between the version and the answer
			want.body, got.body = ownerPattern.ReplaceAllString(want.body, ""), ownerPattern.ReplaceAllString(got.body, "")
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answered{})); diff != "" {
			t.Fatalf("%+v: another answer than was given then (-then +asked with %s):\n%s", n.request, moment, diff)
		}
	}
}

// makeOneOfEachReason creates flags outside the draws, so that evaluations of all flags always include each reason.
func makeOneOfEachReason(me *nodetest.Client) {
	me.Service.T.Helper()
	me.CreateFlag("z-off", nil)
	me.CreateEnabledFlag("z-fallthrough", nil)
	me.CreateEnabledFlag("z-rule", nil)
	me.SetRules("z-rule", `{"rules":[{"conditions":[],"serve":{"value":true}}]}`).Want(200)
	me.CreateEnabledFlag("z-archived", nil)
	me.Call("PATCH", nodetest.FlagPath("z-archived"), `{"status":"archived"}`).Want(200)
}

// Each response of a tenant can be reproduced later by time and by the flag's version, also from rebuilt read models.
func TestAnswersCanBeHadAsTheyWere(t *testing.T) {
	nodetest.BothEngines(t, testAnswersCanBeHadAsTheyWere)
}

func testAnswersCanBeHadAsTheyWere(t *testing.T) {
	t.Parallel()
	e := &evolving{types: map[string]string{}, me: nodetest.New(t).SignUp("tester@example.com")}
	makeOneOfEachReason(e.me)
	project, _ := e.me.CreateProject("first")
	e.projects = []string{project}
	e.environmentsSince = time.Now()
	e.times = []string{e.environmentsSince.UTC().Format(time.RFC3339Nano)}
	complete := func() bool { return e.descriptions > 0 && e.leftProject > 0 }
	evaluationtest.CheckUntil(t, complete, func(rt *rapid.T) {
		me := *e.me
		me.Service = e.me.Service.In(nodetest.Drawn{TB: t, Property: rt})
		for range rapid.IntRange(2, 8).Draw(rt, "changes") {
			e.change(rt, &me)
		}
		e.note(rt, &me)
		e.check(rt, &me, rapid.SampledFrom(e.noted).Draw(rt, "noted"))
	})
	statuses, reasons, versions, kinds := map[int]int{}, map[evaluation.Reason]int{}, map[string]int{}, map[string]int{}
	for _, n := range e.noted {
		statuses[n.answer.status]++
		for _, kind := range countedKinds {
			if n.answer.status == 200 && strings.Contains(n.path+n.context, kind) {
				kinds[kind]++
			}
		}
		for _, reason := range allReasons {
			if n.context != "" && strings.Contains(n.answer.body, fmt.Sprintf(`"reason":%q`, reason)) {
				reasons[reason]++
			}
		}
		if n.version != "" {
			versions[n.environment]++
		}
	}
	t.Logf(
		"%d answers, by status: %v, evaluations by reason: %v, with a version by environment: %v, of some kinds: %v; %d changes through a project, %d plans, %d descriptions, %d flags left their project",
		len(e.noted), statuses, reasons, versions, kinds, e.throughProject, e.plans,
		e.descriptions, e.leftProject,
	)
	if statuses[200] == 0 || statuses[404] == 0 {
		t.Error("there are answers of one status alone")
	}
	if !complete() {
		t.Error("no flag has changed its description, or none its project")
	}
	for _, reason := range allReasons {
		if reasons[reason] == 0 {
			t.Errorf("nothing was served for the reason %s", reason)
		}
	}
	if err := projections.Rebuild(
		t.Context(), e.me.Service.DatabaseURL, e.me.Service.Store(), models.All(), projections.RebuildOptions{},
		nodetest.Log(t),
	); err != nil {
		t.Fatal(err)
	}
	for _, n := range e.noted {
		e.check(t, e.me, n)
	}
	e.me.Call("DELETE", "/api/v1/tenants/"+e.me.Tenant, nil).Want(204)
	for _, n := range e.noted[max(0, len(e.noted)-20):] {
		n.first = 0
		if got := ask(e.me, n.request, n.at); got.status != 403 {
			t.Errorf("%+v: %d once the tenant is deleted, want 403", n.request, got.status)
		}
	}
}
