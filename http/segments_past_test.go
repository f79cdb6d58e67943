package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/nodetest"
)

// segmentAnswer is an answer of a flag when it was given, with what it was asked.
type segmentAnswer struct{ key, environment, body, answer, revision string }

// Whatever happens to flags and segments, an answer can be had again by its revision and at its time, also of
// another node.
func TestAnswersWithSegmentsCanBeHadAgain(t *testing.T) {
	nodetest.BothEngines(t, testAnswersWithSegmentsCanBeHadAgain)
}

func testAnswersWithSegmentsCanBeHadAgain(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t) // other tests wait until the shared one is healthy, which flags with problems prevent
	other := s.SecondNode()
	var histories []*segmentHistory
	rapid.Check(t, func(rt *rapid.T) {
		h := &segmentHistory{me: s.In(nodetest.Drawn{TB: t, Property: rt}).SignUp(nodetest.Address()), rt: rt}
		for _, key := range []string{"a", "b"} {
			createSegment(h.me, key, "")
		}
		createPrivateSegment(h.me, "c")
		for _, key := range dependentFlags {
			h.me.CreateEnabledFlag(key, nil)
			h.me.SetFallthrough(key, `{"serve":{"value":false}}`).Want(200)
			h.me.Call("POST", nodetest.FlagPath(key, "/enable"), nil, "X-Environment", "development").Want(200)
		}
		for range rapid.IntRange(3, 14).Draw(rt, "changes") {
			var writers sync.WaitGroup
			for range rapid.IntRange(1, 2).Draw(rt, "writers") {
				writers.Go(h.change())
			}
			writers.Wait()
			h.note()
		}
		for _, a := range h.noted {
			compareAgain(rt, h.me, a)
		}
		histories = append(histories, h)
	})
	for _, h := range histories[max(0, len(histories)-5):] {
		me := *h.me
		me.Service = other
		for _, a := range h.noted {
			again := nodetest.FlagPath(a.key, "/evaluate?revision="+url.QueryEscape(a.revision))
			other.Eventually("the other node knows the answer", func() bool {
				return me.Call("POST", again, a.body, "X-Environment", a.environment).Status == 200
			})
			compareAgain(t, &me, a)
		}
	}
}

// dependentFlags are the flags of a segmentHistory.
var dependentFlags = []string{"f", "g", "h"}

// segmentEnvironments are the environments in which a segmentHistory changes and evaluates flags. It deletes the second
// one and makes it again.
var segmentEnvironments = []string{"production", "development"}

type segmentHistory struct {
	me    *nodetest.Client
	rt    *rapid.T
	noted []segmentAnswer
}

func (h *segmentHistory) of(what string, choices ...string) string {
	return rapid.SampledFrom(choices).Draw(h.rt, what)
}

func (h *segmentHistory) environments() string {
	return "/api/v1/tenants/" + h.me.Tenant + "/environments"
}

// change draws a change that may be refused.
func (h *segmentHistory) change() (change func()) {
	segment := h.of("segment", "a", "b", "c")
	who, negate := h.of("who", "ada", "bob", "eve"), h.of("negate", "true", "false")
	condition := h.of("condition",
		`{"op":"in_segment","values":["`+h.of("used", "a", "b", "c")+`"],"negate":`+negate+`}`,
		`{"attribute":"plan","op":"in","values":["pro"],"negate":`+negate+`}`,
		`{"attribute":"$environment","op":"in","values":["production"],"negate":`+negate+`}`,
		`{"attribute":"$now","op":"after","values":["2026-01-01T00:00:00Z"],"negate":`+negate+`}`)
	flag := h.of("flag", dependentFlags...)
	in := []string{"X-Environment", h.of("environment", segmentEnvironments...)}
	call := func(method, path string, body any, headers ...string) func() {
		return func() { h.me.Call(method, path, body, headers...) }
	}
	switch h.of("change", "members", "members", "rules", "flag", "flag", "delete", "create", "rename", "revert",
		"prerequisites", "prerequisites", "prerequisites", "toggle", "toggle", "delete flag", "create flag",
		"delete environment", "create environment") {
	case "prerequisites":
		demand := h.of("demand", `"off":true`, `"serves":[{"value":true}]`, `"serves":[{"value":false}]`)
		body := `{"prerequisites":[]}`
		if h.of("removes", "true", "false", "false", "false") == "false" {
			body = fmt.Sprintf(`{"prerequisites":[{"flagKey":%q,%s}]}`, h.of("required", dependentFlags...), demand)
		}
		return call("PUT", nodetest.FlagPath(flag, "/prerequisites"), body, in...)
	case "toggle":
		return call("POST", nodetest.FlagPath(flag, "/"+h.of("toggle", "enable", "disable")), nil, in...)
	case "delete flag":
		return call("DELETE", nodetest.FlagPath(flag), nil)
	case "create flag":
		return func() {
			h.me.Call("POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":"boolean"}`, flag))
			h.me.Call("POST", nodetest.FlagPath(flag, "/enable"), nil, in...)
		}
	case "delete environment":
		return call("DELETE", h.environments()+"/development", nil)
	case "create environment":
		return call("POST", h.environments(), `{"environment":"development"}`)
	case "members":
		list, op := h.of("list", "included", "excluded"), h.of("op", "add", "remove")
		return call("POST", segmentPath(segment, "/members"), fmt.Sprintf(`{"list":%q,%q:[%q]}`, list, op, who))
	case "rules":
		return call("PUT", segmentPath(segment, "/rules"), `{"rules":[{"conditions":[`+condition+`]}]}`)
	case "flag":
		return call("PUT", nodetest.FlagPath(flag, "/rules"),
			`{"rules":[{"conditions":[`+condition+`],"serve":{"value":true}}]}`, in...)
	case "delete":
		return call("DELETE", segmentPath(segment), nil)
	case "create":
		return call("POST", segmentsPath, fmt.Sprintf(`{"key":%q,"private":%s}`, segment, h.of("private", "true", "false")))
	case "rename":
		return call("PATCH", segmentPath(segment), `{"name":"`+who+`"}`)
	default:
		return call("POST", segmentPath(segment, "/revert"), `{"version":2}`)
	}
}

// note asks what a flag serves, and notes it with all other flags.
func (h *segmentHistory) note() {
	for _, key := range dependentFlags {
		a := segmentAnswer{key: key, environment: h.of("asked in", segmentEnvironments...)}
		a.body = fmt.Sprintf(`{"targetingKey":%q,"attributes":{"plan":%q}}`, h.of("asked for", "ada", "bob", "eve"),
			h.of("plan", "pro", "free"))
		answer := h.me.Evaluate(key, a.body, "X-Environment", a.environment)
		if answer.Status == 404 {
			continue
		}
		answer.Want(200)
		a.answer, a.revision = string(answer.Body), answer.Object()["revision"].(string)
		h.noted = append(h.noted, a)
	}
}

// compareAgain asks for an answer again.
func compareAgain(t rapid.TB, me *nodetest.Client, a segmentAnswer) {
	ask := func(path, query string) string {
		return string(me.Answered("POST", path+"?"+query, a.body, "X-Environment", a.environment).Want(200).Body)
	}
	path := nodetest.FlagPath(a.key, "/evaluate")
	if got := ask(path, "revision="+url.QueryEscape(a.revision)); got != a.answer {
		t.Fatalf("for %s in %s, %s was %s and is %s", a.body, a.environment, a.revision, a.answer, got)
	}
	version, at, later := strings.Cut(a.revision, "@")
	at, _, _ = strings.Cut(at, "~")
	if !later {
		if got := ask(path, "version="+version); got != a.answer {
			t.Fatalf("for %s in %s, version %s was %s and is %s", a.body, a.environment, version, a.answer, got)
		}
		return
	}
	if got := ask(path, "at="+at); got != a.answer {
		t.Fatalf("for %s in %s, at %s was %s and is %s", a.body, a.environment, at, a.answer, got)
	}
	if many := ask(manyPath, "at="+at); !strings.Contains(many, `"`+a.key+`":`+a.answer) {
		t.Fatalf("for %s in %s, at %s was %s and all are %s", a.body, a.environment, at, a.answer, many)
	}
}

// Answers that a node gives while another one changes the flag and a segment can be had again, though the node does not
// know yet of all that was recorded before the time of the evaluation.
func TestAnswersOfTheInstantCanBeHadAgain(t *testing.T) {
	nodetest.BothEngines(t, testAnswersOfTheInstantCanBeHadAgain)
}

func testAnswersOfTheInstantCanBeHadAgain(t *testing.T) {
	t.Parallel()
	first := nodetest.Shared(t)
	second := first.SecondNode()
	me := first.SignUp(nodetest.Address())
	there := *me
	there.Service = second
	createSegment(me, "beta", "")
	const rules = `{"rules":[{"name":"%d","conditions":[{"attribute":"$now","op":"after","values":["2026-01-01T00:00:00Z"]},
		{"op":"in_segment","values":["beta"]}],"serve":{"value":true}}]}`
	me.CreateEnabledFlag("k", nil)
	me.SetRules("k", fmt.Sprintf(rules, 0)).Want(200)
	evaluate := func() *nodetest.Answer { return there.Evaluate("k", `{"targetingKey":"ada"}`) }
	second.Eventually("the other node has it", func() bool {
		a := evaluate()
		return a.Status == 200 && a.Object()["flagVersion"] == 3.0
	})
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		for i := range 30 {
			members(me, "beta", fmt.Sprintf(`{"list":"included",%q:["ada"]}`, []string{"add", "remove"}[i%2]))
			me.SetRules("k", fmt.Sprintf(rules, i+1))
		}
	}()
	given := map[string]string{}
	for done := false; !done; {
		select {
		case <-changed:
			done = true
		default:
		}
		a := evaluate().Want(200)
		given[a.Object()["revision"].(string)] = string(a.Body)
	}
	asked := 0
	for revision, then := range given {
		path := nodetest.FlagPath("k", "/evaluate?revision="+url.QueryEscape(revision))
		again := me.Answered("POST", path, `{"targetingKey":"ada"}`)
		if string(again.Want(200).Body) != then {
			t.Errorf("of %s the answer was %s and is %s", revision, then, again.Body)
		}
		if asked++; asked == 200 {
			break
		}
	}
}
