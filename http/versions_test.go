package http_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/cmd/flagledger/nodetest"
)

func TestAVersionAndAComparisonWaitToBeAddedUp(t *testing.T) {
	me := nodetest.New(t).SignUp("me@example.com") // on a node of its own, which may have one slot for all
	me.CreateEnabledFlag("k", nil)
	free := occupy(me.Service.Node.API.Queues.CPU, me.UserID)
	defer free()
	me.Call("GET", nodetest.FlagPath("k", "/versions/1"), nil).Refused(429)
	me.Call("GET", nodetest.FlagPath("k", "/diff?from=1&to=2"), nil).Refused(429)
	me.Call("GET", nodetest.FlagPath("k", "/versions"), nil).Want(200)
	free()
	me.Call("GET", nodetest.FlagPath("k", "/versions/1"), nil).Want(200)
}

func TestVersions(t *testing.T) {
	nodetest.Cases{
		"the versions of a key, newest first": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N"}`, "X-Change-Reason", "a better name").Want(200)
			a := me.Call("GET", nodetest.FlagPath("k", "/versions?limit=2"), nil).Want(200)
			nodetest.Same(t, "all of them", a.Header.Get("X-Total-Count"), "3")
			nodetest.Members(t, "a version", a.List()[0], "version", "timestamp", "action", "userId", "userName", "reason")
			nodetest.Same(t, "the newest",
				[]any{a.List()[0]["version"], a.List()[0]["action"], a.List()[0]["userId"], a.List()[0]["reason"]},
				[]any{3, "updated", me.UserID, "a better name"})
			nodetest.Same(t, "the actions", nodetest.Column(a.List(), "action"), []string{"updated", "enabled"})
			me.Call("GET", nodetest.FlagPath("none", "/versions"), nil).Refused(404)
		},
		"a version shows the flag in all environments of then": func(t *testing.T, me *nodetest.Client) {
			created := me.CreateEnabledFlag("k", map[string]any{"tags": []string{"x"}})
			me.SetFallthrough("k", `{"serve":{"value":false}}`, "X-Environment", "development").Want(200)
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"staging"}`).Want(201)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			a := me.Call("GET", nodetest.FlagPath("k", "/versions/3"), nil).Want(200).Object()
			flag := a["flag"].(map[string]any)
			listed := me.Call("GET", nodetest.FlagPath("k", "/versions?limit=1&offset=1"), nil).Want(200).List()[0]
			nodetest.Same(t, "the version and its time", []any{a["version"], a["timestamp"]}, []any{3, listed["timestamp"]})
			nodetest.Same(t, "its environments", flag["environments"], map[string]any{
				"production": map[string]any{
					"enabled": true, "rules": []any{}, "fallthrough": nil, "prerequisites": []any{},
				},
				"development": map[string]any{
					"enabled": false, "rules": []any{}, "fallthrough": map[string]any{"value": false}, "prerequisites": []any{},
				},
			})
			nodetest.Same(t, "the rest", []any{flag["id"], flag["tags"], flag["version"], flag["createdAt"]},
				[]any{created["id"], []string{"x"}, 3, created["createdAt"]})
			nodetest.Same(t, "the one that deleted it",
				me.Call("GET", nodetest.FlagPath("k", "/versions/4"), nil).Want(200).Object()["flag"], nil)
			me.Call("GET", nodetest.FlagPath("k", "/versions/5"), nil).Refused(404)
			for query, end := range map[string]string{"?from=3&to=4": "to", "?from=2001-01-01T00:00:00Z&to=3": "from"} {
				nodetest.Same(t, query, me.Call("GET", nodetest.FlagPath("k", "/diff"+query), nil).Refused(404).Object()["detail"],
					"the flag did not exist at `"+end+"`")
			}
			me.Call("GET", nodetest.FlagPath("k", "/versions/0"), nil).Refused(422, "version")
		},
		"a time that is shown of a version, sent as at, includes the version": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			for i := range 3 {
				me.Call("PATCH", nodetest.FlagPath("k"), fmt.Sprintf(`{"name":"N%d"}`, i)).Want(200)
			}
			check := func(what string, e map[string]any) {
				got := me.Call("GET", nodetest.FlagPath("k", fmt.Sprint("?at=", e["timestamp"])), nil).Want(200).Object()["version"]
				nodetest.Same(t, fmt.Sprint(what, " at ", e["timestamp"]), got, e["version"])
			}
			lists := map[string][]map[string]any{
				"/versions": me.Call("GET", nodetest.FlagPath("k", "/versions"), nil).Want(200).List(),
				"/audit":    trail(me, "?resourceType=flag"), "/audit/export": exported(me, "?resourceType=flag"),
			}
			for what, list := range lists {
				nodetest.Same(t, what, len(list), 5)
				for _, e := range list {
					check(what, e)
				}
			}
			for n := range 5 {
				check("/versions/{n}",
					me.Call("GET", nodetest.FlagPath("k", fmt.Sprintf("/versions/%d", n+1)), nil).Want(200).Object())
			}
		},
		"what changed between versions or times, and a patch that makes one of the other": func(t *testing.T, me *nodetest.Client) {
			_, b := me.TwoVariations("k") // versions 1 to 3
			me.SetRules("k", fmt.Sprintf(`{"rules":[{"name":"r","conditions":[],"serve":{"variationId":%q}}]}`, b)).Want(200)
			at := time.Now().UTC().Format(time.RFC3339Nano)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N","defaultValue":"9007199254740993","tags":["a","b"]}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k", "/variations/", b), `{"weight":2.5}`).Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			me.SetRules("k", `{"rules":[]}`).Want(200)
			diff := me.Call("GET", nodetest.FlagPath("k", "/diff?from="+at+"&to=8"), nil).Want(200).Object()
			nodetest.Same(t, "the versions", []any{diff["from"], diff["to"]}, []any{4, 8})
			var fields []string
			for _, c := range diff["changes"].([]any) {
				change := c.(map[string]any)
				field, _, _ := strings.Cut(change["field"].(string), ".")
				fields = append(fields, fmt.Sprint(field, " ", change["environment"]))
			}
			nodetest.Same(
				t,
				"the fields",
				fields,
				[]string{
					"defaultValue <nil>",
					"name <nil>",
					"tags <nil>",
					"variations <nil>",
					"enabled development",
					"rules production",
					"rules production",
				},
			)
			version := func(n int) any {
				return me.Call("GET", nodetest.FlagPath("k", fmt.Sprintf("/versions/%d", n)), nil).Want(200).Object()["flag"]
			}
			patched := applyPatch(t, version(4), diff["patch"].([]any))
			if d := cmp.Diff(version(8), patched); d != "" {
				t.Errorf("the patch makes another flag (-version +patched):\n%s", d)
			}
			same := me.Call("GET", nodetest.FlagPath("k", "/diff?from=3&to=3"), nil).Want(200).Object()
			nodetest.Same(t, "of the same version", []any{same["changes"], same["patch"]}, []any{[]any{}, []any{}})
			for query, field := range map[string]string{"?from=x&to=1": "from", "?from=1&to=": "to", "?from=1&to=2026-03-14T15:09:26,5Z": "to", "?to=1": "from", "?from=1&to=2999-01-01T00:00:00Z": "to"} {
				me.Call("GET", nodetest.FlagPath("k", "/diff"+query), nil).Refused(422, field)
			}
			me.Call("GET", nodetest.FlagPath("k", "/diff?from=1&to=9"), nil).Refused(404)
		},
		"a patch is not longer than a large flag": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for first := range 2 {
				var values []string
				for i := range 1000 {
					values = append(values, fmt.Sprint(first+i))
				}
				condition := `{"attribute":"a","op":"in","values":[` + strings.Join(values, ",") + `]}`
				me.SetRules("k", `{"rules":[{"conditions":[`+strings.Repeat(condition+",", 9)+condition+`],"serve":{"value":true}}]}`).
					Want(200)
			}
			a := me.Call("GET", nodetest.FlagPath("k", "/diff?from=2&to=3"), nil).Want(200)
			if n := len(a.Body); n > 200_000 {
				t.Errorf("the answer has %d bytes", n)
			}
			version := func(n int) any {
				return me.Call("GET", nodetest.FlagPath("k", fmt.Sprintf("/versions/%d", n)), nil).Want(200).Object()["flag"]
			}
			if d := cmp.Diff(version(3), applyPatch(t, version(2), a.Object()["patch"].([]any))); d != "" {
				t.Errorf("the patch makes another flag (-version +patched):\n%s", d)
			}
		},
	}.Run(t)
}

// applyPatch applies what RFC 6902 says of add, remove and replace.
func applyPatch(t *testing.T, document any, patch []any) any {
	t.Helper()
	root := map[string]any{"": document}
	for _, p := range patch {
		op := p.(map[string]any)
		steps := append([]string{""}, strings.Split(op["path"].(string), "/")[1:]...)
		set := func(v any) { root[""] = v }
		at := any(root)
		for i, step := range steps {
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			last := i == len(steps)-1
			switch parent := at.(type) {
			case map[string]any:
				if !last {
					at, set = parent[step], func(v any) { parent[step] = v }
				} else if op["op"] == "remove" {
					delete(parent, step)
				} else {
					parent[step] = op["value"]
				}
			case []any:
				n := len(parent)
				if step != "-" {
					if err := json.Unmarshal([]byte(step), &n); err != nil {
						t.Fatal(err)
					}
				}
				switch {
				case !last:
					at, set = parent[n], func(v any) { parent[n] = v }
				case op["op"] == "remove":
					set(append(parent[:n:n], parent[n+1:]...))
				case op["op"] == "add":
					set(append(parent[:n:n], append([]any{op["value"]}, parent[n:]...)...))
				default:
					parent[n] = op["value"]
				}
			}
		}
	}
	return root[""]
}
