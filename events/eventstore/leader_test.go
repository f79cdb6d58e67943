package eventstore_test

import (
	"context"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
)

// cluster starts three servers and a store connected to the first, their leader. Without keepalive, only an unanswered
// call shows that a server hangs.
func cluster(t *testing.T) ([]*esdbtest.Server, *eventstore.Store) {
	t.Helper()
	servers := esdbtest.NewCluster(t, 3)
	return servers, connect(t, esdbtest.ClusterURL(servers)+"&keepAliveInterval=-1")
}

// The old leader hangs with open connections and never returns.
func TestAnAppendFindsTheNewLeader(t *testing.T) {
	t.Parallel()
	servers, s := cluster(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	pages := follow(t, s, events.Position{})
	expect(t, pages, 1, 1)
	appendDuringElection(t, servers, s, func() {})
	expect(t, pages, 2, 1) // the subscription has left the old leader too
}

// An append that waits for the new leader does not fail with the old one.
func TestAnAppendOutlivesTheOldLeader(t *testing.T) {
	t.Parallel()
	servers, s := cluster(t)
	timeout := s.SetAnswerTimeout(time.Hour) // so that a slow first append leaves no search behind
	mustAppend(t, s, "project-1", 0, renamed("a"))
	s.SetAnswerTimeout(timeout)
	appendDuringElection(t, servers, s, servers[0].Reset)
}

// appendDuringElection makes the first server hang, appends, and elects the second when the store looks for a leader.
func appendDuringElection(t *testing.T, servers []*esdbtest.Server, s *eventstore.Store, before func()) {
	t.Helper()
	b := renamed("b")
	_, dialed := servers[1].Connections()
	servers[0].Freeze()
	appended := make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), "project-1", 1, []events.Event{b})
		appended <- err
	}()
	if !esdbtest.WaitFor(time.Minute, func() bool { _, ever := servers[1].Connections(); return ever > dialed }) {
		t.Fatal("the store does not look for another leader")
	}
	before()
	servers[1].Elect()
	elected := time.Now()
	select {
	case err := <-appended:
		t.Logf("the append ended %v after the election", time.Since(elected).Round(time.Millisecond))
		if err != nil {
			t.Errorf("append: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the append waits for a server that hangs")
	}
	if got := read(t, s, "project-1"); len(got) != 2 || got[1].ID != b.ID {
		t.Errorf("%d events stand in the stream, want 2", len(got))
	}
}

func TestAReadLeavesALeaderThatHangs(t *testing.T) {
	t.Parallel()
	servers, s := cluster(t)
	p := mustAppend(t, s, "project-1", 0, renamed("a"))
	servers[0].Freeze()
	servers[2].Elect()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began, n := time.Now(), 0
	for _, err := range s.Read(ctx, "project-1", 0) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		n++
	}
	t.Logf("the read took %v", time.Since(began).Round(time.Millisecond))
	if head, err := s.Head(ctx); n != 1 || err != nil || head != p {
		t.Errorf("%d events were read, want 1; head is %v, %v, want %v", n, head, err, p)
	}
}

// A slow server that does not hang is asked at most twice, and its response counts whenever it arrives.
func TestASlowAppendSucceeds(t *testing.T) {
	t.Parallel()
	s := open(t)
	release := s.server.Hold("project-1")
	a := renamed("a")
	appended := make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), "project-1", 0, []events.Event{a})
		appended <- err
	}()
	_, before := s.server.Connections()
	if !esdbtest.WaitFor(time.Minute, func() bool { _, ever := s.server.Connections(); return ever > before }) {
		t.Fatal("the store does not look for another leader")
	}
	release()
	if err := <-appended; err != nil {
		t.Errorf("append: %v", err)
	}
	if got := read(t, s, "project-1"); len(got) != 1 || got[0].ID != a.ID {
		t.Errorf("%d events stand in the stream, want 1", len(got))
	}
}
