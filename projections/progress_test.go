package projections_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

// all lists the names of all facts.
var all = []string{""}

// ofFlags lists the names of all facts of flags.
var ofFlags = []string{"flag."}

func at(commit uint64) events.Position { return events.Position{Commit: commit, Prepare: commit} }

// snapshotReached reports to Progress that facts of all kinds are at a position, and that the snapshot holds them.
func snapshotReached(p *projections.Progress, position events.Position) {
	page := events.Page{Next: position}
	for _, projection := range models.All() {
		for _, prefix := range projection.FactPrefixes {
			page.Events = append(page.Events, events.Recorded{Name: prefix, Position: position})
		}
	}
	p.SnapshotReached(page)
}

// everywhere reports to Progress that the read models and the snapshot are at a position.
func everywhere(p *projections.Progress, position events.Position) {
	for _, projection := range models.All() {
		p.Reached(projection.Name, position)
	}
	snapshotReached(p, position)
}

func TestWaitReturnsWhenTheLastOfThemIsThere(t *testing.T) {
	t.Parallel()
	last := map[string]func(*projections.Progress, events.Position){"the snapshot": snapshotReached}
	for _, projection := range models.All() {
		last[projection.Name] = func(p *projections.Progress, position events.Position) { p.Reached(projection.Name, position) }
	}
	for name, reach := range last {
		synctest.Test(t, func(t *testing.T) {
			p := projections.NewProgress(models.All(), 0)
			for other, reach := range last {
				if other != name {
					reach(p, at(7))
				}
			}
			reach(p, at(6))
			held := make(chan bool, 1)
			go func() { held <- p.Wait(t.Context(), at(7), all) }()
			time.Sleep(projections.WaitTimeout / 2)
			if len(held) > 0 {
				t.Errorf("it did not wait for %s", name)
			}
			reach(p, at(8)) // a later position is as good
			if !<-held {
				t.Errorf("%s was there in time, and it says no", name)
			}
		})
	}
}

// followers lists the read models that follow a fact, filtered by prefixes.
func followers(names []string) (list []string) {
	for _, p := range models.All() {
		if slices.ContainsFunc(p.FactPrefixes, func(prefix string) bool {
			return slices.ContainsFunc(
				names, func(name string) bool { return strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name) },
			)
		}) {
			list = append(list, p.Name)
		}
	}
	return list
}

func TestOnlyWhatShowsAFactIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, changed := range []string{
		"flag.enabled", "tenant.updated", "tenant.oauth_client_created", "tenant.", "invitation.created", "invitation.accepted tenant.member_added",
	} {
		synctest.Test(t, func(t *testing.T) {
			names := strings.Fields(changed)
			readers := append(followers(names), "snapshot")
			if len(readers) == 1 || len(readers) > len(models.All()) {
				t.Fatalf("%s is followed by %s: want some of the read models", changed, readers)
			}
			p := projections.NewProgress(models.All(), 0)
			reach := func(reader string) {
				if reader == "snapshot" {
					snapshotReached(p, at(7))
				} else {
					p.Reached(reader, at(7))
				}
			}
			for _, reader := range readers[1:] {
				reach(reader)
			}
			if p.Wait(t.Context(), at(7), names) {
				t.Errorf("for %s, %s is not waited for", changed, readers[0])
			}
			reach(readers[0])
			if began := time.Now(); !p.Wait(t.Context(), at(7), names) || time.Since(began) > 0 {
				t.Errorf("for %s others than %s are waited for", changed, readers)
			}
		})
	}
}

func TestWaitEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := projections.NewProgress(models.All(), 0)
		everywhere(p, at(6))
		began := time.Now()
		if p.Wait(t.Context(), at(7), all) {
			t.Error("nothing holds the position, and it says yes")
		}
		if took := time.Since(began); took != projections.WaitTimeout {
			t.Errorf("it waited %v, want %v", took, projections.WaitTimeout)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began = time.Now()
		if p.Wait(ctx, at(7), all) || time.Since(began) != time.Millisecond {
			t.Errorf("it waited %v for a caller who had gone after 1 ms", time.Since(began))
		}
		if began = time.Now(); !p.Wait(ctx, at(6), all) || time.Since(began) != 0 {
			t.Error("what is held is held, at once and whether or not the caller has gone")
		}
	})
}

func TestNotificationsThatComeLateChangeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := projections.NewProgress(models.All(), 0)
		everywhere(p, at(7))
		for _, projection := range models.All() {
			p.Reached(projection.Name, at(3))
		}
		p.Reached("one that is not known here", at(1))
		if !p.Wait(t.Context(), at(7), all) {
			t.Error("a position that was held is held no more")
		}
	})
}

// After a crash of Postgres, a read model may be behind its last known position.
func TestAReadModelThatIsFoundFurtherBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := projections.NewProgress(models.All(), 0)
		everywhere(p, at(7))
		p.Resumed("flags", at(6))
		if p.Wait(t.Context(), at(7), ofFlags) {
			t.Error("what the crash took back is said to be shown")
		}
		if !p.Wait(t.Context(), at(7), []string{"user."}) {
			t.Error("others are waited for, too")
		}
		p.Reached("flags", at(7))
		if !p.Wait(t.Context(), at(7), ofFlags) {
			t.Error("it is there again, and it says no")
		}
	})
}

// A checkpoint does not move for facts of other read models.
func TestACheckpointStandsForAllThatComesBeforeTheNextFactOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ofUsers := []string{"user."}
		p := projections.NewProgress(models.All(), 0)
		p.Reached("users", at(3))
		p.Reached("audit", at(12)) // follows all facts
		p.SnapshotReached(
			events.Page{
				Next:   at(9),
				Events: []events.Recorded{{Name: "user.registered", Position: at(3)}, {Name: "flag.created", Position: at(9)}},
			},
		)
		if !p.Wait(t.Context(), at(8), ofUsers) {
			t.Error("nothing is missing, and it says no")
		}
		if p.Wait(t.Context(), at(10), ofUsers) {
			t.Error("it says yes without knowing what stands there")
		}
		p.SnapshotReached(events.Page{Next: at(12), Events: []events.Recorded{{Name: "user.deactivated", Position: at(11)}}})
		if p.Wait(t.Context(), at(12), ofUsers) {
			t.Error("a fact is missing, and it says yes")
		}
	})
}

// Positions of another log say nothing about this one.
func TestAReadModelOfAnotherLogIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := projections.NewProgress(models.All(), 0)
		first := events.Recorded{Event: events.Event{ID: uuid.New()}, Name: "user.registered", Position: at(1)}
		p.SnapshotReached(events.Page{Next: at(7), Events: []events.Recorded{first}})
		ofUsers := []string{"user."}
		for _, step := range []struct {
			heard string
			want  bool
		}{
			{"audit 9 9 " + events.LogID(first), false},
			{"users 9 9 another log", false},
			{"users 7 7 " + events.LogID(first), true},
			{"users 9 9 another log", false},
			{"users 7 7", true}, // from a node of an earlier release
		} {
			p.Notified(step.heard)
			if got := p.Wait(t.Context(), at(7), ofUsers); got != step.want {
				t.Errorf("after %q it says %v, want %v", step.heard, got, step.want)
			}
		}
	})
}

// After a node fails, another one may update the read model.
func TestAReadModelThatAnotherNodeTakesFurtherIsNotFailing(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]func(*projections.Progress){
		"heard of":                func(p *projections.Progress) { p.Notified("flags 4 4") },
		"found after a reconnect": func(p *projections.Progress) { p.Resumed("flags", at(4)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := projections.NewProgress(models.All(), 0)
			p.Resumed("flags", at(3))
			p.Failed("flags")
			time.Sleep(time.Minute)
			p.Notified("flags 3 3")
			p.Resumed("flags", at(3))
			p.Notified("users 4 4")
			if got := p.Failing(time.Minute); !slices.Equal(got, []string{"flags"}) {
				t.Errorf("%s: before the checkpoint moves, %v are failing", name, got)
			}
			moved(p)
			if got := p.Failing(0); len(got) > 0 {
				t.Errorf("%s: %v are failing", name, got)
			}
		})
	}
}

// A node that updates no read model handles writes too.
func TestProgressHearsOfOtherNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := projections.NewProgress(models.All(), 0)
	w.readAsSnapshot(w.store, other)
	w.append("flag-t.a", 0, newFlag("a"))
	stop := w.carryOn()
	w.settle()
	w.background(func(ctx context.Context) { other.Listen(ctx, w.url, w.store, w.log) })
	w.eventually("it knows what was there before it listened",
		func() bool { return other.Wait(t.Context(), at(1), ofFlags) })
	if !other.Wait(t.Context(), w.append("flag-t.b", 0, newFlag("b")), ofFlags) {
		t.Error("it did not hear of a commit")
	}
	if other.Wait(t.Context(), at(3), ofFlags) {
		t.Error("it heard of what has not happened")
	}

	w.breakConnections()
	position := w.append("flag-t.c", 0, newFlag("c"))
	w.eventually("it listens again, and knows what it missed",
		func() bool { return other.Wait(t.Context(), position, ofFlags) })

	stop()
	position = w.append("flag-t.d", 0, newFlag("d"))
	w.rebuild(models.All()...)
	if !other.Wait(t.Context(), position, ofFlags) {
		t.Error("it did not hear that a rebuild took the read models further")
	}
}
