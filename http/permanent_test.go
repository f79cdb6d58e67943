package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// A permanent flag has that in its history, in its past, and after a revert.
func TestPermanentFlags(t *testing.T) {
	nodetest.Cases{
		"the history, versions and their differences tell it": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"permanent": true})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"permanent":false}`).
				Want(200).
				Shows(map[string]any{"permanent": false, "version": 2})
			history := me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List()
			nodetest.Same(t, "the change", history[0]["changes"],
				map[string]any{"permanent": map[string]any{"from": true, "to": false}})
			nodetest.Same(t, "the creation", history[1]["changes"].(map[string]any)["permanent"],
				map[string]any{"from": nil, "to": true})
			nodetest.Same(t, "version 1",
				me.Call("GET", nodetest.FlagPath("k", "/versions/1"), nil).Want(200).Object()["flag"].(map[string]any)["permanent"],
				true)
			me.Call("GET", nodetest.FlagPath("k", "?version=1"), nil).Want(200).Shows(map[string]any{"permanent": true})
			diff := me.Call("GET", nodetest.FlagPath("k", "/diff?from=1&to=2"), nil).Want(200).Object()
			nodetest.Same(t, "the difference", diff["changes"],
				[]any{map[string]any{"field": "permanent", "environment": nil, "from": true, "to": false}})
		},
		"lists of the past tell it": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"permanent": true})
			then := "?" + atNow()
			me.Call("PATCH", nodetest.FlagPath("k"), `{"permanent":false}`).Want(200)
			nodetest.Same(t, "then", me.Call("GET", "/api/v1/flags"+then, nil).Want(200).List()[0]["permanent"], true)
			nodetest.Same(t, "now", me.Call("GET", "/api/v1/flags", nil).Want(200).List()[0]["permanent"], false)
		},
		"a revert brings it back, also from a state that is kept": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"permanent": true})
			for range 50 {
				me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
				me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
			}
			me.Call("PATCH", nodetest.FlagPath("k"), `{"permanent":false}`).Want(200).Shows(map[string]any{"version": 102})
			me.Call("GET", nodetest.FlagPath("k", "?version=101"), nil).Want(200).Shows(map[string]any{"permanent": true})
			me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":101}`).
				Want(200).
				Shows(map[string]any{"permanent": true})
		},
	}.Run(t)
}
