package http_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// TestChangesAtOnce changes one thing by many concurrent callers.
func TestChangesAtOnce(t *testing.T) { nodetest.BothEngines(t, testChangesAtOnce) }

func testChangesAtOnce(t *testing.T) {
	const callers = 16
	nodetest.Cases{
		"of creations with one key exactly one succeeds": func(t *testing.T, me *nodetest.Client) {
			for round := range 3 {
				key := fmt.Sprint("k", round)
				count := statuses(callers, func(i int) *nodetest.Answer {
					return me.Call("POST", "/api/v1/flags", map[string]any{"key": key, "type": "number", "defaultValue": i})
				})
				nodetest.Same(t, "statuses", count, map[int]int{201: 1, 409: callers - 1})
				me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Shows(map[string]any{"version": 1})
				nodetest.Same(t, "entries of the history", len(me.History(key, "")), 1)
			}
		},
		"no update of a flag is lost, and nobody sees a lost race": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			count := statuses(callers, func(i int) *nodetest.Answer {
				return me.Call("PATCH", nodetest.FlagPath("k"), map[string]string{"description": fmt.Sprint("by ", i)})
			})
			nodetest.Same(t, "statuses", count, map[int]int{200: callers})
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": callers + 1})
			history := me.History("k", "?action=updated")
			nodetest.Same(t, "entries of the history", len(history), callers)
			to, seen := any(""), map[any]bool{}
			for i := len(history) - 1; i >= 0; i-- {
				changed := history[i]["changes"].(map[string]any)["description"].(map[string]any)
				nodetest.Same(t, "what a change began from", changed["from"], to)
				to = changed["to"]
				seen[to] = true
			}
			nodetest.Same(t, "different changes", len(seen), callers)
		},
		"changes of different things of one flag all arrive": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			count := statuses(callers, func(i int) *nodetest.Answer {
				switch i % 4 {
				case 0:
					return me.Call("POST", nodetest.FlagPath("k", "/variations"), map[string]any{"name": fmt.Sprint(i), "value": true})
				case 1:
					return me.Call("POST", nodetest.FlagPath("k", "/enable"), nil)
				case 2:
					return me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"tags": []string{fmt.Sprint(i)}})
				default:
					return me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"inactive"}`)
				}
			})
			nodetest.Same(t, "statuses", count, map[int]int{200: 12, 201: 4})
			a := me.Call("GET", nodetest.FlagPath("k"), nil).Want(200)
			a.Shows(map[string]any{"enabled": true, "status": "inactive", "version": 1 + 4 + 1 + 4 + 1})
			nodetest.Same(t, "variations", len(a.Object()["variations"].([]any)), 4)
		},
		"of changes with one If-Match exactly one succeeds": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			count := statuses(callers, func(i int) *nodetest.Answer {
				return me.Call("PATCH", nodetest.FlagPath("k"), map[string]string{"name": fmt.Sprint("by ", i)}, "If-Match", `"1"`)
			})
			nodetest.Same(t, "statuses", count, map[int]int{200: 1, 412: callers - 1})
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 2})
		},
		"of deletions exactly one succeeds": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			unknown := atomic.Int64{} // the deletion may be one of those that succeeded
			count := statuses(callers, func(int) (a *nodetest.Answer) {
				me.Service.Eventually("a busy machine answers", func() bool {
					a = me.Call("DELETE", nodetest.FlagPath("k"), nil)
					if a.Status == 503 {
						unknown.Add(1)
					}
					return a.Status != 503 && a.Status != 429
				})
				return a
			})
			if count[204] != 1 && (count[204] > 1 || unknown.Load() == 0) || count[204]+count[404] != callers {
				t.Errorf("statuses: %v, after %d that tell nothing", count, unknown.Load())
			}
		},
		"of variations with one name exactly one is added": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			count := statuses(callers, func(int) *nodetest.Answer {
				return me.Call("POST", nodetest.FlagPath("k", "/variations"), `{"name":"v","value":true}`)
			})
			nodetest.Same(t, "statuses", count, map[int]int{201: 1, 422: callers - 1})
			nodetest.Same(t, "variations", len(me.Variations("k")), 1)
		},
		"who is told that a flag is enabled sees it so, whoever enabled it": func(t *testing.T, me *nodetest.Client) {
			for round := range 10 {
				key := fmt.Sprint("k", round)
				me.CreateFlag(key, nil)
				statuses(4, func(int) *nodetest.Answer {
					done := me.Call("POST", nodetest.FlagPath(key, "/enable"), nil).Want(200)
					me.Evaluate(key, `{}`).Want(200).Shows(map[string]any{"enabled": true})
					if got := me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Object(); got["enabled"] != true {
						t.Errorf("round %d: right after the answer the flag is %v", round, got)
					}
					return done
				})
			}
		},
		"a flag is read whole, as it was at one version": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			var writer sync.WaitGroup
			written := make(chan struct{})
			writer.Go(func() {
				defer close(written)
				for i := range 30 {
					me.AddVariation("k", fmt.Sprintf(`{"name":"%d","value":true}`, i))
				}
			})
			for reading := true; reading; {
				select {
				case <-written:
					reading = false
				default:
				}
				a := me.Call("GET", nodetest.FlagPath("k"), nil).Want(200)
				body := a.Object()
				nodetest.Same(t, "the variations of the version", len(body["variations"].([]any))+1, body["version"])
				nodetest.Same(t, "the ETag of the version", a.Header.Get("ETag"), fmt.Sprintf(`"%v"`, body["version"]))
			}
			writer.Wait()
		},
		"many flags are created at once, and each caller sees their own": func(t *testing.T, me *nodetest.Client) {
			nodetest.Same(t, "statuses", statuses(callers, func(i int) *nodetest.Answer {
				key := fmt.Sprint("k", i)
				created := me.Call("POST", "/api/v1/flags", map[string]string{"key": key, "type": "boolean"}).Want(201)
				me.Call("GET", nodetest.FlagPath(key), nil).Want(200)
				if got := me.FlagKeys("?q=" + key); len(got) == 0 {
					t.Errorf("the list does not show %s", key)
				}
				return created
			}), map[int]int{201: callers})
			nodetest.Same(t, "flags", len(me.FlagKeys("")), callers)
		},
	}.Run(t)
}
