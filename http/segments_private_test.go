package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func createPrivateSegment(me *nodetest.Client, key string) map[string]any {
	return me.Call("POST", segmentsPath, `{"key":"`+key+`","private":true}`).Want(201).Object()
}

func TestPrivateSegments(t *testing.T) {
	nodetest.Cases{
		"their members are checked, but shown nowhere": func(t *testing.T, me *nodetest.Client) {
			nodetest.Same(t, "private", createPrivateSegment(me, "beta")["private"], true)
			members(me, "beta", `{"list":"included","add":["ada","bob"]}`).Want(200).Shows(map[string]any{"added": 2})
			members(me, "beta", `{"list":"included","add":["ada","ada"],"remove":["bob","eve"]}`).Want(200).
				Shows(map[string]any{"added": 0, "removed": 1, "unchanged": 2})
			members(me, "beta", `{"list":"excluded","add":["eve",""]}`).Refused(422, "add[1]")
			members(me, "beta", `{"list":"excluded","add":["eve"]}`).Want(200)
			me.Call("PUT", segmentPath("beta", "/rules"), `{"rules":[`+ofPlan("pro")+`]}`).Want(200)
			flagFor(me, "f", "beta")
			for who, in := range map[string]bool{"ada": true, "bob": false, "eve": false} {
				body := `{"targetingKey":"` + who + `","attributes":{"plan":"free"}}`
				me.Call("POST", segmentPath("beta", "/check"), body).Want(200).Shows(map[string]any{"member": in})
				me.Evaluate("f", body).Want(200).Shows(map[string]any{"value": in})
			}
			me.Call("POST", segmentPath("beta", "/check?version=2"), `{"targetingKey":"bob"}`).Want(200).
				Shows(map[string]any{"member": true})
			me.Call("GET", segmentPath("beta", "/members"), nil).Refused(409)
			me.Call("GET", segmentPath("beta", "/members?version=2"), nil).Refused(409)
			history := me.Call("GET", segmentPath("beta", "/history?action=members_added&limit=1"), nil).Want(200)
			nodetest.Same(t, "the history", history.List()[0]["changes"],
				map[string]any{"excluded": map[string]any{"from": nil, "to": 1.0}})
			diff := me.Call("GET", segmentPath("beta", "/diff?from=1&to=2"), nil).Want(200)
			for _, a := range []*nodetest.Answer{
				diff, me.Call("GET", segmentPath("beta"), nil), me.Call("GET", segmentPath("beta", "/history"), nil),
				me.Call("GET", "/api/v1/audit?resourceType=segment", nil),
				me.Call("GET", segmentPath("beta", "/versions/2"), nil),
			} {
				for _, member := range []string{"ada", "bob", "eve"} {
					if text := string(a.Want(200).Body); strings.Contains(text, `"`+member+`"`) {
						t.Errorf("%s shows a member: %s", a.Call, text)
					}
				}
			}
		},
		"forgetting ends them, now and in the past": func(t *testing.T, me *nodetest.Client) {
			createPrivateSegment(me, "beta")
			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			flagFor(me, "f", "beta")
			there := *me
			there.Service = me.Service.SecondNode()
			ask := func(c *nodetest.Client, query string) any {
				return c.Call("POST", nodetest.FlagPath("f", "/evaluate"+query), `{"targetingKey":"ada"}`).Want(200).Object()["value"]
			}
			before := me.Evaluate("f", `{"targetingKey":"ada"}`).Want(200).Object()
			nodetest.Same(t, "what ada is served", before["value"], true)
			revision := "?revision=" + url.QueryEscape(before["revision"].(string))
			there.Service.Eventually("the other node serves it", func() bool {
				a := there.Call("POST", nodetest.FlagPath("f", "/evaluate"), `{"targetingKey":"ada"}`)
				return a.Status == 200 && a.Object()["value"] == true
			})
			nodetest.Same(t, "the past at the other node", ask(&there, revision), true)

			me.Call("POST", segmentPath("beta", "/forget"), nil, "If-Match", `"1"`).Refused(412)
			nodetest.Same(t, "what a refused call leaves", ask(me, ""), true)
			me.Call("POST", segmentPath("beta", "/forget"), nil).Want(200).
				Shows(map[string]any{"version": 3, "counts": map[string]any{"included": 0, "excluded": 0}})
			for _, query := range []string{"", revision} {
				nodetest.Same(t, "ada after that "+query, ask(me, query), false)
				there.Service.Eventually("the other node forgets too", func() bool { return ask(&there, query) == false })
			}
			me.Call("POST", segmentPath("beta", "/revert"), `{"version":2}`).Refused(409)
			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			nodetest.Same(t, "a member that was added again", ask(me, ""), true)
			nodetest.Same(t, "the past of that", ask(me, revision), false)
			createSegment(me, "plain", "")
			me.Call("POST", segmentPath("plain", "/forget"), nil).Refused(409)
			me.Call("POST", segmentPath("none", "/forget"), nil).Refused(404)
		},
		"forgetting ends earlier lives of the key": func(t *testing.T, me *nodetest.Client) {
			first := createPrivateSegment(me, "beta")
			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			at := me.Call("GET", segmentPath("beta"), nil).Want(200).Object()["updatedAt"].(string)
			me.Call("DELETE", segmentPath("beta"), nil).Want(204)
			createPrivateSegment(me, "beta")
			member := func(query string) any {
				return me.Call("POST", segmentPath("beta", "/check?"+query), `{"targetingKey":"ada"}`).Want(200).Object()["member"]
			}
			nodetest.Same(t, "ada in the first life", member("at="+at), true)
			me.Call("POST", segmentPath("beta", "/forget"), nil).Want(200)
			nodetest.Same(t, "ada after that", member("at="+at), false)
			me.Call("POST", segmentPath("beta", "/revert"), `{"version":2}`).Refused(409)

			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			version := me.Call("GET", segmentPath("beta"), nil).Want(200).Object()["version"]
			query := fmt.Sprint("version=", version)
			me.Call("DELETE", segmentPath("beta"), nil).Want(204)
			nodetest.Same(t, "ada in a deleted segment", member(query), true)
			me.Call("POST", segmentPath("beta", "/forget"), nil).Want(200)
			nodetest.Same(t, "ada once that is forgotten", member(query), false)
			now := me.Call("GET", segmentPath("beta", "/history"), nil).Want(200).List()[0]["timestamp"].(string)
			nodetest.Same(t, "the segments then", len(me.Call("GET", segmentsPath+"?at="+now, nil).Want(200).List()), 0)
			nodetest.Same(t, "the segments before", me.Call("GET", segmentsPath+"?at="+at, nil).Want(200).List()[0]["id"], first["id"])
		},
		"forgetting twice at once keeps the new salt": func(t *testing.T, me *nodetest.Client) {
			createPrivateSegment(me, "beta")
			for range 5 {
				var calls sync.WaitGroup
				for range 2 {
					calls.Go(func() {
						if reply := me.Attempt("POST", segmentPath("beta", "/forget"), ""); reply.Status != 200 {
							t.Errorf("forget: %s", reply)
						}
					})
				}
				calls.Wait()
				members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			}
			there := *me
			there.Service = me.Service.SecondNode()
			there.Call("POST", segmentPath("beta", "/check"), `{"targetingKey":"ada"}`).Want(200).Shows(map[string]any{"member": true})
		},
	}.Run(t)
}

// A retry whose first answer was lost ends the salts from before the first, and not the one that it named.
func TestRetriedForgetKeepsTheNewSalt(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	createPrivateSegment(me, "beta")
	members(me, "beta", `{"list":"included","add":["bob"]}`).Want(200)
	forget := func() *nodetest.Answer { return keyed(me, "k", "POST", segmentPath("beta", "/forget"), nil) }
	first := forget().Want(200)
	members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
	forgetAnswers(s)
	carriedOutAgain(forget(), first)
	there := *me
	there.Service = s.SecondNode()
	for who, in := range map[string]bool{"ada": true, "bob": false} {
		there.Call("POST", segmentPath("beta", "/check"), `{"targetingKey":"`+who+`"}`).Want(200).
			Shows(map[string]any{"member": in})
	}
}
