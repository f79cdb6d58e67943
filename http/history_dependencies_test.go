package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// changesWithDependencies lists the history of a flag with its dependencies, newest first.
func changesWithDependencies(me *nodetest.Client, key, query string) (all []string) {
	for _, entry := range me.History(key, "?dependencies=true&"+query) {
		text := entry["action"].(string)
		if of, ok := entry["dependency"].(map[string]any); ok {
			text = fmt.Sprint(of["type"], " ", of["key"], " ", text)
		}
		all = append(all, text)
	}
	return all
}

// require sets that a flag requires others to be on and serve true.
func require(me *nodetest.Client, key string, others ...string) {
	list := make([]string, len(others))
	for i, other := range others {
		list[i] = fmt.Sprintf(`{"flagKey":%q,"serves":[{"value":true}]}`, other)
	}
	me.Call("PUT", nodetest.FlagPath(key, "/prerequisites"), `{"prerequisites":[`+strings.Join(list, ",")+`]}`).Want(200)
}

func TestHistoryShowsDependencies(t *testing.T) {
	nodetest.Cases{
		"segments that rules use, while they do": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "staff", "")
			createSegment(me, "beta", "")
			me.CreateFlag("k", nil)
			members(me, "beta", `{"list":"included","add":["before"]}`).Want(200)
			rule := strings.TrimSuffix(ofSegment("beta"), "}") + `,"serve":{"value":true}}`
			me.SetRules("k", `{"rules":[`+rule+`]}`).Want(200)
			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			me.Call("PUT", segmentPath("beta", "/rules"), `{"rules":[`+ofSegment("staff")+`]}`).Want(200)
			members(me, "staff", `{"list":"excluded","add":["eve"]}`).Want(200)
			me.SetRules("k", `{"rules":[]}`).Want(200)
			members(me, "beta", `{"list":"included","add":["after"]}`).Want(200)

			all := []string{
				"rules_changed", "segment staff members_added", "segment beta rules_changed", "segment beta members_added",
				"rules_changed", "created",
			}
			nodetest.Same(t, "the history", changesWithDependencies(me, "k", ""), all)
			nodetest.Same(t, "a page", changesWithDependencies(me, "k", "limit=2&offset=1"), all[1:3])
			page := me.Call("GET", nodetest.FlagPath("k", "/history?dependencies=true&limit=2"), nil).Want(200)
			nodetest.Same(t, "the total", page.Header.Get("X-Total-Count"), "6")
			nodetest.Same(t, "one action", changesWithDependencies(me, "k", "action=members_added"), []string{"segment staff members_added", "segment beta members_added"})
			nodetest.Same(t, "one environment", changesWithDependencies(me, "k", "environment=production"),
				[]string{"rules_changed", "rules_changed"})
			entry := me.History("k", "?dependencies=true&limit=1&offset=3")[0]
			nodetest.Same(t, "an entry", []any{entry["version"], entry["environment"], entry["changes"], entry["dependency"]}, []any{
				3, nil, map[string]any{"included": map[string]any{"from": nil, "to": []any{"ada"}}},
				map[string]any{"type": "segment", "key": "beta"},
			})
			for _, entry := range me.History("k", "") {
				if _, shown := entry["dependency"]; shown {
					t.Errorf("the history of the flag alone has %v", entry)
				}
			}
			me.Call("GET", nodetest.FlagPath("none", "/history?dependencies=true"), nil).Refused(404)
		},
		"flags that it requires, and theirs": func(t *testing.T, me *nodetest.Client) {
			for _, key := range []string{"deep", "payments", "k"} {
				me.CreateEnabledFlag(key, nil)
			}
			require(me, "payments", "deep")
			require(me, "k", "payments")
			me.Call("POST", nodetest.FlagPath("deep", "/disable"), nil).Want(200)
			require(me, "payments")
			me.Call("POST", nodetest.FlagPath("deep", "/enable"), nil).Want(200)
			me.Call("PATCH", nodetest.FlagPath("payments"), `{"name":"Pay"}`).Want(200)
			nodetest.Same(t, "the history", changesWithDependencies(me, "k", "limit=4"), []string{
				"flag payments updated", "flag payments prerequisites_changed", "flag deep disabled", "prerequisites_changed",
			})
		},
	}.Run(t)
}
