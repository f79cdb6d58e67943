package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
)

func TestNodesAgreeOnBrokenReferences(t *testing.T) {
	nodetest.BothEngines(t, testNodesAgreeOnBrokenReferences)
}

// Two nodes at once delete a segment and use it, and close a cycle from both ends; and so with flags that require each
// other. Whatever comes first, both give the same answers, now and later.
func testNodesAgreeOnBrokenReferences(t *testing.T) {
	t.Parallel()
	first := nodetest.New(t) // other tests wait until the shared one is healthy, which flags with problems prevent
	second := first.SecondNode()
	me := first.SignUp(nodetest.Address())
	there := *me
	there.Service = second
	both := func(a, b func()) {
		var calls sync.WaitGroup
		calls.Go(a)
		calls.Go(b)
		calls.Wait()
	}
	rules := func(c *nodetest.Client, key, used string) {
		c.Call("PUT", segmentPath(key, "/rules"), `{"rules":[`+strings.Replace(ofSegment(used), "}", `,"negate":true}`, 1)+`]}`)
	}
	require := func(c *nodetest.Client, key, required string) {
		c.Call("PUT", nodetest.FlagPath(key, "/prerequisites"),
			fmt.Sprintf(`{"prerequisites":[{"flagKey":%q,"serves":[{"value":true}]}]}`, required))
	}
	agree := func(key string) {
		t.Helper()
		answer := func(c *nodetest.Client) string {
			return string(c.Evaluate(key, `{"targetingKey":"ada"}`).Want(200).Body)
		}
		second.Eventually("both nodes agree", func() bool { return answer(me) == answer(&there) })
		now := me.Evaluate(key, `{"targetingKey":"ada"}`).Want(200)
		again := nodetest.FlagPath(key, "/evaluate?revision="+url.QueryEscape(now.Object()["revision"].(string)))
		for _, c := range []*nodetest.Client{me, &there} {
			nodetest.Same(t, "the answer of the revision", string(c.Call("POST", again, `{"targetingKey":"ada"}`).Want(200).Body),
				string(now.Body))
		}
	}
	problems := map[string]int{}
	for i := range 6 {
		flag, segment := fmt.Sprint("f", i), fmt.Sprint("s", i)
		createSegment(me, segment, "")
		me.CreateEnabledFlag(flag, nil)
		second.Eventually("the other node has it", func() bool { return there.Call("HEAD", segmentPath(segment), nil).Status == 200 })
		both(func() { there.Call("DELETE", segmentPath(segment), nil) }, func() {
			me.SetRules(flag, `{"rules":[`+strings.TrimSuffix(ofSegment(segment), "}")+`,"serve":{"value":false}}]}`)
		})
		agree(flag)
		x, y := "x"+segment, "y"+segment
		createSegment(me, x, "")
		createSegment(me, y, "")
		second.Eventually("the other node has it", func() bool { return there.Call("HEAD", segmentPath(y), nil).Status == 200 })
		both(func() { rules(me, x, y) }, func() { rules(&there, y, x) })
		second.Eventually("the first node has both", func() bool {
			return me.Call("GET", segmentPath(y, "/versions"), nil).Want(200).List()[0]["version"] ==
				there.Call("GET", segmentPath(y, "/versions"), nil).Want(200).List()[0]["version"]
		})
		flagFor(me, "c"+flag, x)
		agree("c" + flag)
		on, other := "on"+flag, "other"+flag
		me.CreateEnabledFlag(on, nil)
		me.CreateEnabledFlag(other, nil)
		second.Eventually("the other node has it", func() bool { return there.Evaluate(other, `{}`).Status == 200 })
		both(func() { require(me, on, other) }, func() { require(&there, other, on) })
		for _, key := range []string{on, other} {
			version := func(c *nodetest.Client) any { return c.Evaluate(key, `{}`).Object()["flagVersion"] }
			second.Eventually("both nodes have the flag", func() bool { return version(me) == version(&there) })
		}
		agree(on)
		agree(other)
		archived := "archived" + flag
		me.CreateEnabledFlag(archived, nil)
		second.Eventually("the other node has it", func() bool { return there.Evaluate(archived, `{}`).Status == 200 })
		both(func() { there.Call("DELETE", nodetest.FlagPath(archived), nil) }, func() { require(me, flag, archived) })
		agree(flag)
		for _, key := range []string{flag, "c" + flag, on} {
			if list, ok := me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Object()["problems"].([]any); ok {
				problems[list[0].(map[string]any)["code"].(string)]++
			}
		}
	}
	t.Logf("problems: %v", problems)
}

func TestStreamNamesFlagsOfSegment(t *testing.T) {
	nodetest.Cases{
		"in each environment": func(_ *testing.T, me *nodetest.Client) {
			createSegment(me, "inner", "")
			createSegment(me, "outer", ofSegment("inner"))
			flagFor(me, "k", "outer")
			me.CreateFlag("other", nil)
			here, elsewhere := listen(me), listen(me, "X-Environment", "development")
			members(me, "inner", `{"list":"included","add":["ada"]}`).Want(200)
			here.hears("k 4")
			me.CreateFlag("last", nil)
			here.hears("last 1")
			elsewhere.hears("last 1")
		},
	}.Run(t)
}

func TestFeedHasSegments(t *testing.T) {
	nodetest.Cases{
		"whole and then what changes": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", ofPlan("pro"))
			var many []string
			for i := range 9000 {
				many = append(many, fmt.Sprintf("%q", fmt.Sprintf("user-%06d", i)))
			}
			members(me, "beta", `{"list":"included","add":[`+strings.Join(many, ",")+`]}`).Want(200)
			flagFor(me, "k", "beta")
			_, server := createKey(me, "server", nil)
			feed, replica := readFeed(server), snapshot.NewReplica()
			pieces := 0
			take := func(done func() bool) {
				for !done() {
					e := feed.next()
					if e.Segment != nil {
						pieces++
					}
					if err := replica.Apply(e); err != nil {
						t.Fatal(err)
					}
				}
			}
			serves := func(unit string) string {
				tenant, ok := replica.OwnTenant()
				if !ok {
					return ""
				}
				flag, dependencies, _ := tenant.FlagWithDependencies("k")
				r, err := flag.Evaluate(tenant.Environments()[0].ID, &evaluation.Context{TargetingKey: unit, Dependencies: dependencies})
				if err != nil {
					t.Fatal(err)
				}
				newest := r.AskedAt
				if r.ChangedAt.After(newest) {
					newest = r.ChangedAt
				}
				return fmt.Sprint(string(r.Value), " ", newest.UTC().Format(events.RecordedFormat))
			}
			wants := func(unit string) func() bool {
				return func() bool {
					now := me.Evaluate("k", fmt.Sprintf(`{"targetingKey":%q}`, unit)).Want(200).Object()
					_, at, _ := strings.Cut(now["revision"].(string), "@")
					return serves(unit) == fmt.Sprint(now["value"], " ", at)
				}
			}
			ready := func() bool { return serves("user-000001") != "" }
			take(ready)
			nodetest.Same(t, "what the replica serves", wants("user-008999")(), true)
			if pieces < 2 {
				t.Errorf("the segment comes in %d pieces", pieces)
			}
			members(me, "beta", `{"list":"included","add":["zoe"],"remove":["user-000001"]}`).Want(200)
			update := feed.of(snapshot.FeedSegment)
			nodetest.Same(t, "the update", []any{update.Segment.Add, update.Segment.Remove}, []any{
				map[string]any{"included": []any{"zoe"}}, map[string]any{"included": []any{"user-000001"}},
			})
			if err := replica.Apply(update); err != nil {
				t.Fatal(err)
			}
			take(wants("zoe"))
			take(wants("user-000001"))
			me.SetRules("k", `{"rules":[]}`).Want(200)
			me.Call("DELETE", segmentPath("beta"), nil).Want(204)
			gone := feed.next()
			for ; gone.SegmentKey == ""; gone = feed.next() {
				_ = replica.Apply(gone)
			}
			nodetest.Same(t, "the segment that is gone", gone.SegmentKey, "beta")
		},
	}.Run(t)
}

// A hundred thousand members come in by CSV in five seconds.
func TestManyMembersByCSV(t *testing.T) {
	nodetest.Cases{
		"in five seconds": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "large", "")
			began := time.Now()
			for i := range 10 {
				var text strings.Builder
				for j := range 10_000 {
					fmt.Fprintf(&text, "user-%06d\n", i*10_000+j)
				}
				me.Call("POST", segmentPath("large", "/members?list=included"), text.String(), "Content-Type", "text/csv").
					Want(200).Shows(map[string]any{"added": 10_000})
			}
			t.Logf("100,000 members took %v", time.Since(began))
			members(me, "large", `{"list":"included","add":["one more"]}`).Refused(409)
			me.Call("GET", segmentPath("large"), nil).Want(200).
				Shows(map[string]any{"counts": map[string]any{"included": 100_000, "excluded": 0}})
		},
	}.Run(t)
}
