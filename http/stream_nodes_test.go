package http_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/http/evaluation"
)

// The other node of this test knows the position of a change before there is one.
func TestWhoHasHeardOfAChangeAtAnotherNodeWaitsForIt(t *testing.T) {
	nodetest.BothEngines(t, testWhoHasHeardOfAChangeAtAnotherNodeWaitsForIt)
}

func testWhoHasHeardOfAChangeAtAnotherNodeWaitsForIt(t *testing.T) {
	me := streaming(t, evaluation.StreamLimits{}).SignUp("me@example.com")
	createHeard(me, "k")
	l := listen(me)
	enable(me, "k", "production")
	at, known := streamIDs(me).Position(l.next().Data.ETag)
	nodetest.Same(t, "the id is known", known, true)
	etag := func(commit uint64) string {
		return streamIDs(me).ID(events.Position{Commit: commit, Prepare: commit})
	}
	next := fmt.Sprintf("%s?flagConfigLastModified=1771622898&flagConfigEtag=%s", ofrepPath, etag(at.Commit+1))
	var fetched sync.WaitGroup
	fetched.Go(func() {
		if flag := me.Call("POST", next, `{"context":{}}`).Object()["flags"].([]any)[0].(map[string]any); flag["reason"] != "DISABLED" {
			t.Errorf("the answer is from before the change: %v", flag)
		}
	})
	me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
	fetched.Wait()
	me.Call("POST", ofrepPath+"?flagConfigEtag="+etag(99_999_999_999), `{"context":{}}`).Want(200)
	me.Call("POST", ofrepPath+"?flagConfigEtag=%22abc%22", `{"context":{}}`).Want(200)
}

func TestAStreamHearsOfOtherNodes(t *testing.T) {
	nodetest.BothEngines(t, testAStreamHearsOfOtherNodes)
}

func testAStreamHearsOfOtherNodes(t *testing.T) {
	t.Parallel()
	first := nodetest.Shared(t)
	second := first.SecondNode()
	me := first.SignUp(nodetest.Address())
	there := *me
	there.Service = second
	second.Eventually("the other node knows the tenant",
		func() bool { return there.Call("HEAD", streamPath, nil).Status == 200 })
	l := listen(&there)
	for i := range 5 {
		began := time.Now()
		me.CreateFlag(fmt.Sprintf("k%d", i), nil)
		e := l.next()
		nodetest.Same(t, "what changed", e.flags(), fmt.Sprintf("k%d 1", i))
		t.Logf("heard on the other node %v after the change was asked for", e.at.Sub(began))
	}
	// A client resumes at the node that it reaches next.
	l.hangUp()
	enable(me, "k0", "production")
	resumed := openStream(me, streamPath, "Last-Event-ID", l.last)
	resumed.hears("k0 2")
	resumed.next()
	// A restarted node still knows.
	third := first.SecondNode()
	there.Service = third
	openStream(&there, streamPath, "Last-Event-ID", l.last).hears("k0 2")
	me.Call("POST", "/api/v1/auth/logout", nil).Want(200)
	resumed.ends()
}

// A client that learns of a change and reads at once finds it on the same node.
func TestAStreamTellsOfAChangeWhenListsShowIt(t *testing.T) {
	nodetest.BothEngines(t, testAStreamTellsOfAChangeWhenListsShowIt)
}

func testAStreamTellsOfAChangeWhenListsShowIt(t *testing.T) {
	t.Parallel()
	const changes = 40
	first := nodetest.Shared(t)
	second := first.SecondNode()
	me := first.SignUp(nodetest.Address())
	there := *me
	there.Service = second
	second.Eventually("the other node knows the tenant",
		func() bool { return there.Call("HEAD", streamPath, nil).Status == 200 })
	streams := map[*nodetest.Client]*listening{me: listen(me), &there: listen(&there)}
	me.CreateFlag("k", nil)
	for c, l := range streams {
		l.hears("k 1")
		c.Call("GET", nodetest.FlagPath("k"), nil).Want(200)
	}
	late := 0
	for version := 2; version < changes+2; version++ {
		changed := make(chan struct{})
		began := time.Now()
		go func() {
			defer close(changed)
			enableOrDisable := map[bool]string{true: "/enable", false: "/disable"}[version%2 == 0]
			me.Call("POST", nodetest.FlagPath("k", enableOrDisable), nil).Want(200)
		}()
		for c, l := range streams {
			e := l.next()
			row := c.Call("GET", "/api/v1/flags", nil).Want(200).List()[0]
			history := c.History("k", "")
			if row["version"] == float64(version) && len(history) == version {
				continue
			}
			if late++; e.at.Sub(began) < time.Second {
				t.Errorf("version %d was heard of after %v, and the lists show version %v and %d entries", version, e.at.Sub(began),
					row["version"], len(history))
			}
		}
		<-changed
	}
	t.Logf("%d of %d reads were too early because the read models lagged for a second", late, 2*changes)
}
