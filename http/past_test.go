package http_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

// pastCall is a call and its response at a moment.
type pastCall struct {
	method, path, environment, body string
	answer                          *nodetest.Answer
	version                         int
	at                              time.Time
}

// observe makes the calls that are later repeated for the past. The flag has the version.
func observe(me *nodetest.Client, key string, version int) (calls []pastCall) {
	me.Service.T.Helper()
	for _, environment := range []string{"production", "development", "staging"} {
		for _, tail := range []string{"", "/variations", "/rules"} {
			calls = append(calls, pastCall{method: "GET", path: nodetest.FlagPath(key, tail), environment: environment})
		}
		for _, body := range []string{`{"targetingKey":"u1"}`, `{"targetingKey":"u2","attributes":{"plan":"pro"}}`} {
			calls = append(calls,
				pastCall{method: "POST", path: nodetest.FlagPath(key, "/evaluate"), environment: environment, body: body})
		}
	}
	for i := range calls {
		c := &calls[i]
		c.version, c.answer = version, c.call(me, "")
	}
	at := time.Now()
	for i := range calls {
		calls[i].at = at
	}
	return calls
}

func (c pastCall) call(me *nodetest.Client, query string) *nodetest.Answer {
	me.Service.T.Helper()
	if c.body == "" {
		return me.Call(c.method, c.path+query, nil, "X-Environment", c.environment)
	}
	return me.Call(c.method, c.path+query, c.body, "X-Environment", c.environment)
}

func atQuery(at time.Time) string { return "?at=" + url.QueryEscape(at.Format(time.RFC3339Nano)) }

func TestThePast(t *testing.T) { nodetest.BothEngines(t, testThePast) }

func testThePast(t *testing.T) {
	nodetest.Cases{
		"each answer is given again, byte for byte but for how the flag is used": func(t *testing.T, me *nodetest.Client) {
			environments := "/api/v1/tenants/" + me.Tenant + "/environments"
			var seen []pastCall
			version := 0
			call := func(method, path string, body any, headers ...string) *nodetest.Answer {
				a := me.Call(method, path, body, headers...)
				version++
				seen = append(seen, observe(me, "k", version)...)
				return a
			}
			beforeCreation := time.Now()
			created := call(
				"POST",
				"/api/v1/flags",
				`{"key":"k","type":"string","defaultValue":"\u00e9 9007199254740993","tags":["b","a"],"flag_variations":[{"name":"a","value":"A","weight":1},{"name":"b","value":"B","weight":12.5}]}`,
			).Want(201)
			variation := created.Object()["variations"].([]any)[0].(map[string]any)["id"]
			me.Call("POST", environments, `{"environment":"staging"}`).Want(201)
			call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			call(
				"PUT",
				nodetest.FlagPath("k", "/rules"),
				fmt.Sprintf(
					`{"rules":[{"name":"pro","conditions":[{"attribute":"plan","op":"in","values":["pro"]}],"serve":{"variationId":%q}}]}`,
					variation,
				),
			).Want(200)
			call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "staging").Want(200)
			call("PUT", nodetest.FlagPath("k", "/fallthrough"), `{"serve":{"value":"rest"}}`, "X-Environment", "staging").Want(200)
			me.Call("DELETE", environments+"/staging", nil).Want(204)
			seen = append(seen, observe(me, "k", 0)...)
			me.Call("POST", environments, `{"environment":"staging"}`).Want(201) // another one, in which nothing is set
			seen = append(seen, observe(me, "k", 0)...)
			call("PATCH", nodetest.FlagPath("k", "/variations/", variation.(string)), `{"weight":3,"value":"A2"}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N","status":"inactive"}`).Want(200)
			version += 2
			seen = append(seen, observe(me, "k", version)...)
			call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Want(201)
			for _, c := range seen {
				queries := []string{atQuery(c.at)}
				if c.version > 0 && c.environment != "staging" { // it changed between versions
					queries = append(queries, fmt.Sprintf("?version=%d", c.version))
				}
				for _, query := range queries {
					again := c.call(me, query)
					nodetest.Same(t, again.Call+" in "+c.environment, again.Status, c.answer.Status)
					if again.Status == 200 {
						nodetest.Same(t, again.Call+" in "+c.environment, string(again.Body),
							useOfFlag.ReplaceAllString(string(c.answer.Body), ""))
					}
					nodetest.Same(t, "its ETag", again.Header.Get("ETag"), "")
				}
			}
			me.Call("GET", nodetest.FlagPath("k", atQuery(beforeCreation)), nil).Refused(404)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate", atQuery(beforeCreation)), `{}`).Refused(404)
		},
		"what is no moment of the past is refused": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			future := atQuery(time.Now().Add(time.Hour))
			for _, tail := range []string{"", "/variations", "/rules"} {
				for query, field := range map[string]string{
					future: "at", "?at=": "at", "?at=yesterday": "at", "?at=2026-03-14": "at", "?at=2026-03-14T15:09:26,5Z": "at", "?version=0": "version", "?version=-1": "version", "?version=x": "version", "?version=": "version",
					"?version=1&at=2026-03-14T15:09:26Z": "version",
				} {
					me.Call("GET", nodetest.FlagPath("k", tail, query), nil).Refused(422, field)
					me.Call("POST", nodetest.FlagPath("k", "/evaluate", query), `{}`).Refused(422, field)
				}
				me.Call("GET", nodetest.FlagPath("k", tail, "?version=3"), nil).Refused(404)
				me.Call("GET", nodetest.FlagPath("none", tail, "?version=1"), nil).Refused(404)
				me.Call("GET", nodetest.FlagPath("k", tail, "?version=2"), nil, "X-Environment", "none").Refused(404)
			}
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?version=3"), `{}`).Refused(404)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?version=2"), `{"environment":"none"}`).Refused(404)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?explain=maybe"), `{}`).Refused(422, "explain")
		},
		"a project's flag of the past is found under the project that it was in": func(_ *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			other, _ := me.CreateProject("q")
			me.Call("POST", nodetest.ProjectFlagsPath(project), `{"key":"k","type":"boolean"}`).Want(201)
			me.Call("GET", nodetest.ProjectFlagsPath(project, "/k?version=1"), nil).
				Want(200).
				Shows(map[string]any{"projectId": project, "version": 1})
			me.Call("GET", nodetest.ProjectFlagsPath(other, "/k?version=1"), nil).Refused(404)
		},
		"a page of the variations of then": func(t *testing.T, me *nodetest.Client) {
			me.TwoVariations("k")
			a := me.Call("GET", nodetest.FlagPath("k", "/variations?version=3&limit=1&offset=1"), nil).Want(200)
			nodetest.Same(t, "the page", nodetest.Column(a.List(), "name"), []string{"b"})
			nodetest.Same(t, "all of them", a.Header.Get("X-Total-Count"), "2")
			nodetest.Same(t, "before the second",
				nodetest.Column(me.Call("GET", nodetest.FlagPath("k", "/variations?version=2"), nil).Want(200).List(), "name"),
				[]string{"a"})
		},
	}.Run(t)
}
