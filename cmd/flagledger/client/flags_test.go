package client_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestLifeOfAFlag(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("flags", "create", "new-checkout", "-m", "The café opens").
		prints("flag new-checkout", "type boolean", "in production off", "default false", "version 1")
	me.run("eval", "new-checkout", "--key", "user-42").prints("value false", "reason OFF")
	me.run("flags", "enable", "new-checkout", "-m", "launch day").prints("new-checkout is on in production.")
	me.run("flags", "enable", "new-checkout", "--env", "development").prints("new-checkout is on in development.")
	me.run("flags", "disable", "new-checkout").prints("new-checkout is off in production.")
	me.run("flags", "list").prints("FLAG TYPE PRODUCTION ...", "new-checkout boolean off active 4 ... new-checkout")
	me.run("flags", "list", "--env=development").prints("FLAG TYPE DEVELOPMENT ...", "new-checkout boolean on ...")
	_, session := me.stored()
	me.run("flags", "history", "new-checkout").prints(
		"VERSION TIME CHANGE ENVIRONMENT BY REASON",
		"4 ... disabled production "+session["email"]+" -",
		"2 ... enabled production "+session["email"]+" launch day",
		"1 ... created - "+session["email"]+" The café opens")
	me.run("flags", "diff", "new-checkout", "--from", "1", "--to", "2").prints(
		"FIELD ENVIRONMENT VERSION 1 VERSION 2", "enabled production false true")
	me.run("flags", "revert", "new-checkout", "--version=2", "-m", "it was right").
		prints("in production on", "version ...")
	me.run("flags", "show", "new-checkout").prints("flag new-checkout", "in production on")
}

func TestJSONIsTheAnswerOfTheAPI(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	const exact = "9007199254740993"
	created := me.run("flags", "create", "limit", "--type", "number", "--default", exact, "--json")
	if !strings.Contains(created.stdout, `"defaultValue":`+exact) {
		t.Errorf("a number is %s", created.stdout)
	}
	if me.run("flags", "show", "limit", "--json").object()["variations"] == nil {
		t.Error("a flag has no variations")
	}
	me.run("flags", "show", "limit").prints("default " + exact)
	me.run("eval", "limit", "--key=u").prints("value " + exact)
	if got := me.run("flags", "enable", "limit", "--json").stdout; got != `{"success":true}`+"\n" {
		t.Errorf("enable prints %s", got)
	}
	me.run("flags", "disable", "limit", "--json").object()
	for _, arguments := range [][]string{{"flags", "list"}, {"flags", "history", "limit"}} {
		var list []map[string]any
		if err := json.Unmarshal([]byte(me.run(append(arguments, "--json")...).stdout), &list); err != nil || len(list) == 0 {
			t.Errorf("%v prints %v (%v)", arguments, list, err)
		}
	}
	if got := me.run("flags", "diff", "limit", "--from=1", "--to=2", "--json").object(); got["patch"] == nil {
		t.Errorf("a diff is %v", got)
	}
	if got := me.run("flags", "explain", "limit", "--key=u", "--json").object(); got["explanation"] == nil {
		t.Errorf("an explanation is %v", got)
	}
	if got := me.run("eval", "limit", "--key=u", "--json").object(); got["explanation"] != nil || got["reason"] != "OFF" {
		t.Errorf("an evaluation is %v", got)
	}
	if got := me.run("flags", "rules", "limit", "--json").object(); got["rules"] == nil {
		t.Errorf("rules are %v", got)
	}
	if got := me.run("flags", "revert", "limit", "--version=1", "--json").object(); got["key"] != "limit" {
		t.Errorf("a revert is %v", got)
	}
}

func TestDefaultsAreOfTheFlagsType(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	for flagType, texts := range map[string][2]string{
		"boolean": {"true", "true"}, "string": {"12", `"12"`}, "json": {`{"a":[1.50]}`, `{"a":[1.50]}`}, "number": {"-1e3", "-1e3"},
	} {
		me.run("flags", "create", "f-"+flagType, "--type", flagType, "--default="+texts[0]).prints("default " + texts[1])
	}
	me.try("flags", "create", "k", "--type=number", "--default=many").refused(1, "--default", "number")
	me.try("flags", "create", "k", "--type=boolean", "--default=1").refused(1, "validation failed", "defaultValue")
	me.try("flags", "create", "k", "--type=text").refused(1, "--type", "boolean")
}

func TestErrorsNameTheField(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("flags", "create", "k")
	me.try("flags", "create", "a b").refused(1, "validation failed: key ")
	me.try("flags", "create", "k").refused(1, "exists")
	me.try("flags", "show", "missing").refused(1, "missing")
	me.try("flags", "enable", "k", "--env=moon").refused(1, "environment")
	me.try("flags", "enable", "k", "-m", strings.Repeat("x", 501)).refused(1, "-m must be at most")
	me.try("flags", "enable", "k", "-m", "a\nb").refused(1, "-m")
	me.try("flags", "revert", "k", "--version=9").refused(1, "flags/k/revert")
	me.try("flags", "diff", "k", "--from=x", "--to=1").refused(1, "from")
	me.try("flags", "list", "--tenant=other").refused(1, "tenant")
	me.try("eval", "k", "--at=yesterday").refused(1, "--at", "yesterday")
	me.try("flags", "surf").refused(1, "surf")
}

func TestRulesFromFile(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("flags", "create", "k")
	me.run("flags", "enable", "k")
	file := filepath.Join(me.home, "rules.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"rules":[{"name":"paying","conditions":[{"attribute":"plan","op":"in","values":["pro","team"]},
		{"attribute":"seats","op":"gt","values":[9007199254740993],"negate":true}],"serve":{"value":true}}]}`)
	me.run("flags", "rules", "k", "--file", file, "-m", "sell").prints("RULE CONDITIONS SERVES",
		`paying plan in "pro", "team" and not seats gt 9007199254740993 true`)
	before := me.run("flags", "rules", "k", "--json")
	me.typing(before.stdout).run("flags", "rules", "k", "--file=-")
	if after := me.run("flags", "rules", "k", "--json"); after.stdout != before.stdout {
		t.Errorf("the rules %s became %s", before.stdout, after.stdout)
	}
	if version := me.run("flags", "show", "k", "--json").object()["version"]; version != 3.0 {
		t.Errorf("the same rules made version %v", version)
	}
	me.run("flags", "explain", "k", "--key=u", "--attr", "plan=pro", "--attr", "seats=3").prints(
		"value true", "reason RULE_MATCH", "STEP OUTCOME BECAUSE",
		`rule paying matched plan in "pro", "team" holds for "pro"; not seats gt 9007199254740993 holds for 3`)
	me.run("eval", "k", "--explain", "--key=u", "--attr", "plan=free").prints(
		"reason FALLTHROUGH", `rule paying not_matched plan in "pro", "team" does not hold for "free"`)
	write(`{"rules":[{"conditions":[],"serve":{}}]}`)
	me.try("flags", "rules", "k", "--file", file).refused(1, "rules[0].serve")
	write(`{`)
	me.try("flags", "rules", "k", "--file", file).refused(1)
	me.try("flags", "rules", "k", "--file", file+".missing").refused(1, "rules.json.missing")
}

func TestRolloutsNameVariations(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t).In(t)
	me := signUp(t, s)
	_, session := me.stored()
	c := &nodetest.Client{Service: s, Token: session["token"], Tenant: session["tenant"]}
	c.CreateEnabledFlag("k", nil)
	c.AddVariation("k", `{"name":"on","value":true,"weight":12.5}`).Want(201)
	id := c.Variations("k")[0]["id"].(string)
	c.SetFallthrough("k", `{"serve":{"rollout":[{"variationId":"`+id+`","weight":33.333}],"bucketBy":"company"}}`).Want(200)
	me.run("flags", "show", "k").prints("VARIATION WEIGHT VALUE", "on 12.5 true")
	me.run("flags", "rules", "k").prints("else - on 33.333 by company")
	me.run("flags", "explain", "k", "--attr=company=acme").prints("variation on", `split on company "acme" is in bucket ... of 33333`)
	me.try("eval", "k", "--key=u").refused(1, "company")
}

func TestEvalTestsByItsCode(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("flags", "create", "k")
	me.run("flags", "create", "colour", "--type=string", "--default=red")
	code := func(want int, arguments ...string) ran {
		t.Helper()
		r := me.try(append(arguments, "--test")...)
		if r.code != want {
			t.Errorf("%s ended with code %d, want %d", r.command, r.code, want)
		}
		return r
	}
	if r := code(1, "eval", "k", "--key=u"); r.stderr != "" {
		t.Errorf("it says %s", r.stderr)
	}
	code(1, "eval", "colour", "--key=u")
	me.run("flags", "enable", "k")
	me.run("flags", "enable", "colour")
	code(0, "eval", "k", "--key=u").prints("value true")
	code(0, "eval", "colour", "--key=u", "--json")
	me.typing(`{"rules":[{"conditions":[{"attribute":"plan","op":"in","values":["free"]}],"serve":{"value":false}}]}`).
		run("flags", "rules", "k", "--file=-")
	code(1, "eval", "k", "--key=u", "--attr=plan=free")
	code(0, "eval", "k", "--key=u", "--attr=plan=pro")
	code(2, "eval", "missing", "--key=u").refused(2, "missing")

	created := me.run("flags", "history", "k", "--json").stdout
	var history []struct{ Action, Timestamp string }
	if err := json.Unmarshal([]byte(created), &history); err != nil {
		t.Fatal(err)
	}
	code(1, "eval", "k", "--key=u", "--at", history[len(history)-1].Timestamp)
}

func TestTextOfTheServiceDrivesNoTerminal(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t).In(t)
	me := signUp(t, s)
	_, session := me.stored()
	c := &nodetest.Client{Service: s, Token: session["token"], Tenant: session["tenant"]}
	c.CreateFlag("k", map[string]any{"name": "a\u009b2Jb\u202e", "description": "x\x1b]0;title\ay\tz"})
	me.run("flags", "show", "k").prints(`name a\u009b2Jb\u202e`, `description x\x1b]0;title\ay\tz`)
	me.run("flags", "list").prints(`k boolean ... a\u009b2Jb\u202e`)
	asJSON := me.run("flags", "show", "k", "--json")
	if strings.ContainsAny(asJSON.stdout, "\u009b\u202e\x1b") || asJSON.object()["name"] != "a\u009b2Jb\u202e" {
		t.Errorf("as JSON it is %q", asJSON.stdout)
	}
}

// output collects what a running command prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// watch starts a watch. It ends with the test at the latest.
func (s shell) watch(arguments ...string) (stdout, stderr *output, c *exec.Cmd) {
	s.t.Helper()
	stdout, stderr = &output{}, &output{}
	c = s.command(append([]string{"flags", "watch"}, arguments...)...)
	c.Stdout, c.Stderr = stdout, stderr
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill() })
	return stdout, stderr, c
}

func TestWatchContinuesWithoutAGap(t *testing.T) {
	t.Parallel()
	s, expire := expiring(t)
	me := signUp(t, s)
	me.run("flags", "create", "before")
	through := newDoor(t, s.URL)
	me = me.with("FLAGLEDGER_URL=" + through.URL)
	me.typing(nodetest.Password).run("login", me.email(), "--password-stdin")

	stdout, stderr, c := me.watch()
	everywhere, _, _ := me.watch("--json", "--env=*")
	s.Eventually("both watch", func() bool {
		return strings.Contains(stderr.String(), "Watching production") && strings.Contains(everywhere.String(), "connected")
	})
	me.run("flags", "create", "k")
	s.Eventually("the change is printed", func() bool { return strings.Contains(stdout.String(), "  k  version 1\n") })
	through.shut()
	s.Eventually("the loss is reported", func() bool { return strings.Contains(stderr.String(), "trying again") })
	direct := me.with("FLAGLEDGER_URL="+s.URL, "FLAGLEDGER_TOKEN="+me.token(), "FLAGLEDGER_TENANT="+me.tenant())
	direct.run("flags", "enable", "k")
	direct.run("flags", "enable", "k", "--env=development")
	expire()
	through.open()
	s.Eventually("what was missed is printed", func() bool {
		return strings.Contains(stdout.String(), "  k  version 2\n") &&
			strings.Contains(everywhere.String(), `"environment":"development"`)
	})
	if strings.Contains(stdout.String(), "before") || strings.Contains(stdout.String(), "version 3") {
		t.Errorf("it prints changes of before, or of another environment:\n%s", stdout)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("interrupted, it ended with %v", err)
	}
	me.try("flags", "watch", "--env=moon").refused(1, "environment")
}

func (s shell) email() string  { _, stored := s.stored(); return stored["email"] }
func (s shell) token() string  { _, stored := s.stored(); return stored["token"] }
func (s shell) tenant() string { _, stored := s.stored(); return stored["tenant"] }

func TestFlagRulesAndOwners(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := signUp(t, s)
	_, session := me.stored()
	api := s.Anonymous().WithToken(session["token"])
	api.Tenant = session["tenant"]
	rules := "/api/v1/tenants/" + session["tenant"]
	id := api.Call("GET", rules+"/users", nil).Want(200).List()[0]["userId"].(string)
	api.Call("PUT", rules+"/flag-rules", `{"requireOwner":true,"requireReason":["production"]}`).Want(200)
	me.try("flags", "create", "k").refused(1, "owner is required")
	me.run("flags", "create", "k", "--owner", id).prints("owner " + id)
	me.try("flags", "enable", "k").refused(1, "-m is required")
	me.run("flags", "enable", "k", "-m", "launch")
	me.run("flags", "list", "--owner=me").prints("FLAG ...", "k boolean on ...")
	me.run("flags", "list", "K", "nothing").prints("FLAG ...")
	me.run("flags", "list", "K").prints("FLAG ...", "k boolean on ...")
	api.Call("PATCH", nodetest.FlagPath("k"), map[string]any{
		"owner": nil, "links": []any{map[string]any{"title": "Plan", "url": "https://example.com/plan"}},
	}, "X-Change-Reason", "done").Want(200)
	me.run("flags", "show", "k").prints("owner -", "link Plan https://example.com/plan")
	if got := me.run("flags", "list", "--owner=me", "--json").stdout; got != "[]\n" {
		t.Errorf("the list is %s", got)
	}
}
