package main

import (
	"fmt"
	"sync"
	"testing"
)

// TestChangesAtOnce has many callers change one thing.
func TestChangesAtOnce(t *testing.T) {
	const callers = 16
	cases{
		"of creations with one key exactly one succeeds": func(t *testing.T, me *client) {
			for round := range 3 {
				key := fmt.Sprint("k", round)
				count := statuses(callers, func(i int) *answer {
					return me.call("POST", "/api/v1/flags", map[string]any{"key": key, "type": "number", "defaultValue": i})
				})
				same(t, "statuses", count, map[int]int{201: 1, 409: callers - 1})
				me.call("GET", flagPath(key), nil).want(200).shows(map[string]any{"version": 1})
				same(t, "entries of the history", len(me.history(key, "")), 1)
			}
		},
		"no update of a flag is lost, and nobody sees a lost race": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			count := statuses(callers, func(i int) *answer {
				return me.call("PATCH", flagPath("k"), map[string]string{"description": fmt.Sprint("by ", i)})
			})
			same(t, "statuses", count, map[int]int{200: callers})
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": callers + 1})
			history := me.history("k", "?action=updated")
			same(t, "entries of the history", len(history), callers)
			to, seen := any(""), map[any]bool{}
			for i := len(history) - 1; i >= 0; i-- {
				changed := history[i]["changes"].(map[string]any)["description"].(map[string]any)
				same(t, "what a change began from", changed["from"], to)
				to = changed["to"]
				seen[to] = true
			}
			same(t, "different changes", len(seen), callers)
		},
		"changes of different things of one flag all arrive": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			count := statuses(callers, func(i int) *answer {
				switch i % 4 {
				case 0:
					return me.call("POST", flagPath("k", "/variations"), map[string]any{"name": fmt.Sprint(i), "value": true})
				case 1:
					return me.call("POST", flagPath("k", "/enable"), nil)
				case 2:
					return me.call("PATCH", flagPath("k"), map[string]any{"tags": []string{fmt.Sprint(i)}})
				default:
					return me.call("PATCH", flagPath("k"), `{"status":"inactive"}`)
				}
			})
			same(t, "statuses", count, map[int]int{200: 12, 201: 4})
			a := me.call("GET", flagPath("k"), nil).want(200)
			a.shows(map[string]any{"enabled": true, "status": "inactive", "version": 1 + 4 + 1 + 4 + 1})
			same(t, "variations", len(a.object()["variations"].([]any)), 4)
		},
		"of changes with one If-Match exactly one succeeds": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			count := statuses(callers, func(i int) *answer {
				return me.call("PATCH", flagPath("k"), map[string]string{"name": fmt.Sprint("by ", i)}, "If-Match", `"1"`)
			})
			same(t, "statuses", count, map[int]int{200: 1, 412: callers - 1})
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": 2})
		},
		"of deletions exactly one succeeds": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			same(t, "statuses", statuses(callers, func(int) *answer { return me.call("DELETE", flagPath("k"), nil) }), map[int]int{204: 1, 404: callers - 1})
		},
		"of variations with one name exactly one is added": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			count := statuses(callers, func(int) *answer { return me.call("POST", flagPath("k", "/variations"), `{"name":"v","value":true}`) })
			same(t, "statuses", count, map[int]int{201: 1, 422: callers - 1})
			same(t, "variations", len(me.variations("k")), 1)
		},
		"who is told that a flag is enabled sees it so, whoever enabled it": func(t *testing.T, me *client) {
			for round := range 10 {
				key := fmt.Sprint("k", round)
				me.createFlag(key, nil)
				statuses(4, func(int) *answer {
					done := me.call("POST", flagPath(key, "/enable"), nil).want(200)
					me.evaluate(key, `{}`).want(200).shows(map[string]any{"enabled": true})
					if got := me.call("GET", flagPath(key), nil).want(200).object(); got["enabled"] != true {
						t.Errorf("round %d: right after the answer the flag is %v", round, got)
					}
					return done
				})
			}
		},
		"a flag is read whole, as it was at one version": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			var writer sync.WaitGroup
			written := make(chan struct{})
			writer.Go(func() {
				defer close(written)
				for i := range 30 {
					me.addVariation("k", fmt.Sprintf(`{"name":"%d","value":true}`, i))
				}
			})
			for reading := true; reading; {
				select {
				case <-written:
					reading = false
				default:
				}
				a := me.call("GET", flagPath("k"), nil).want(200)
				body := a.object()
				same(t, "the variations of the version", len(body["variations"].([]any))+1, body["version"])
				same(t, "the ETag of the version", a.header.Get("ETag"), fmt.Sprintf(`"%v"`, body["version"]))
			}
			writer.Wait()
		},
		"many flags are created at once, and each caller sees his own": func(t *testing.T, me *client) {
			same(t, "statuses", statuses(callers, func(i int) *answer {
				key := fmt.Sprint("k", i)
				created := me.call("POST", "/api/v1/flags", map[string]string{"key": key, "type": "boolean"}).want(201)
				me.call("GET", flagPath(key), nil).want(200)
				if got := me.keys("?q=" + key); len(got) == 0 {
					t.Errorf("the list does not show %s", key)
				}
				return created
			}), map[int]int{201: callers})
			same(t, "flags", len(me.keys("")), callers)
		},
	}.run(t)
}
