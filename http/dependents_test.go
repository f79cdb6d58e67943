package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestDependents(t *testing.T) {
	nodetest.Cases{
		"are listed in all environments": func(t *testing.T, me *nodetest.Client) {
			for _, key := range []string{"payments", "banner", "checkout", "deep"} {
				me.CreateFlag(key, nil)
			}
			path := nodetest.FlagPath("payments", "/dependents")
			nodetest.Same(t, "of a flag that none requires", string(me.Call("GET", path, nil).Want(200).Body), "[]")
			require(me, "checkout", "payments")
			require(me, "deep", "checkout")
			off := `{"prerequisites":[{"flagKey":"payments","off":true}]}`
			me.Call("PUT", nodetest.FlagPath("banner", "/prerequisites"), off, "X-Environment", "development").Want(200)
			me.Call("PUT", nodetest.FlagPath("banner", "/prerequisites"), off).Want(200)
			all := []map[string]any{
				{"flagKey": "banner", "environment": "development", "off": true},
				{"flagKey": "banner", "environment": "production", "off": true},
				{"flagKey": "checkout", "environment": "production", "serves": []any{map[string]any{"value": true}}},
			}
			list := me.Call("GET", path, nil).Want(200).List()
			nodetest.Same(t, "the dependents", len(list), len(all))
			for _, one := range all {
				nodetest.Same(t, "a dependent", contains(list, one), true)
			}
			nodetest.Same(t, "the last", list[2], all[2])
			page := me.Call("GET", path+"?limit=1&offset=2", nil).Want(200)
			nodetest.Same(t, "a page", []any{page.List()[0], page.Header.Get("X-Total-Count")}, []any{all[2], "3"})
			require(me, "checkout")
			nodetest.Same(t, "later", len(me.Call("GET", path, nil).Want(200).List()), 2)
		},
		"of a flag that does not exist are not found": func(_ *testing.T, me *nodetest.Client) {
			me.Call("GET", nodetest.FlagPath("none", "/dependents"), nil).Refused(404)
		},
	}.Run(t)
}
