package snapshot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"flagledger/events"
)

// asksFor is a rule that matches the members of a segment.
func asksFor(segment string) events.Rule {
	return events.Rule{ID: "r", Serve: toA, Conditions: []events.Condition{
		{Op: events.InSegment, Values: raw(`["` + segment + `"]`)},
	}}
}

func TestBrokenFlagsAreRecountedAfterChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScribe()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.countBroken(ctx)
		wants := func(what string, n int) {
			t.Helper()
			synctest.Wait()
			time.Sleep(time.Minute) // the goroutine rests
			synctest.Wait()
			if got := s.BrokenFlags(); got != n {
				t.Errorf("%s: %d broken flags, want %d", what, got, n)
			}
		}
		segment := events.SegmentStream("t", "beta")
		s.flag("t", "a", three, on, ruled(asksFor("beta")))
		s.flag("t", "b", three, on, ruled(asksFor("beta")))
		wants("without the segment", 2)
		s.page(segment, events.SegmentCreated{TenantID: "t", Key: "beta", ID: "beta"})
		wants("with it", 0)
		s.page(segment, events.SegmentDeleted{})
		wants("after its end", 2)
		s.flag("t", "a", events.FlagDeleted{})
		wants("with a flag less", 1)
		s.page(events.TenantStream("t"), events.EnvironmentDeleted{Environment: production})
		wants("without the environment", 0)
		s.page(events.TenantStream("t"), events.EnvironmentAdded{Environment: production})
		s.flag("t", "c", three, on, ruled(asksFor("beta")))
		wants("with another flag", 1)
		s.page(events.TenantStream("t"), events.TenantDeleted{})
		wants("without the tenant", 0)
	})
}
