package writer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/eventstest"
)

// lagging is a node whose snapshot shows new things only after a wait for the head of the log. Shorter waits time out.
type lagging struct {
	*Writer
	shown atomic.Int64
}

func newLagging(m *eventstest.Memory) *lagging {
	n := &lagging{}
	n.Writer = NewWriter(m, func(_ context.Context, _ events.Position, names []string) bool {
		if len(names) > 0 {
			return false
		}
		m.Mu.Lock()
		defer m.Mu.Unlock()
		n.shown.Store(int64(len(m.Streams)))
		return true
	}, NoQuotas{}, time.Now)
	return n
}

// create creates a flag in a tenant that has all but ten of its flags.
func (n *lagging) create(ctx context.Context, key string) error {
	flags, release, err := n.Reserve(ctx, "flags of t", commands.MaxFlags, func() int { return commands.MaxFlags - 10 + int(n.shown.Load()) })
	if err != nil {
		return err
	}
	defer release()
	_, _, err = Do(ctx, n.Writer, By{}, commands.CreateFlag{TenantID: "t", Key: key, Type: events.BooleanFlag, FlagCount: flags})
	return err
}

// A node never exceeds the limit, however many callers create the last flags at once. Each further node may exceed it
// by one.
func TestALimitIsHeld(t *testing.T) {
	for nodes := 1; nodes <= 4; nodes++ {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			store, _ := newMemory()
			var running sync.WaitGroup
			var made atomic.Int64
			for node := range nodes {
				n := newLagging(store)
				for caller := range 16 {
					running.Go(func() {
						for i := range 3 {
							switch err := n.create(t.Context(), fmt.Sprintf("k%d.%d.%d", node, caller, i)); {
							case err == nil:
								made.Add(1)
							case commands.KindOf(err) != commands.Conflict:
								t.Error(err)
							}
						}
					})
				}
			}
			running.Wait()
			if n := int(made.Load()); n < 10 || n > 10+nodes-1 {
				t.Errorf("%d flags were made, want 10, and at most %d", n, 10+nodes-1)
			}
		})
	}
}

func TestFarFromALimitNoneWaits(t *testing.T) {
	_, w := newMemory()
	count := func() int { return commands.MaxFlags - countMargin - 1 }
	for range 2 {
		n, release, err := w.Reserve(t.Context(), "flags of t", commands.MaxFlags, count)
		if err != nil || n != count() || len(w.counting.keys) > 0 {
			t.Fatalf("counted %d, %v", n, err)
		}
		release()
	}
	behind := NewWriter(w.store, func(context.Context, events.Position, []string) bool { return false }, NoQuotas{}, time.Now)
	given(t, behind, 0)
	if _, _, err := behind.Reserve(t.Context(), "flags of t", commands.MaxFlags, func() int { return commands.MaxFlags - 1 }); commands.KindOf(err) != commands.Unavailable {
		t.Errorf("behind the log, it is counted: %v", err)
	}
	if len(behind.counting.keys) > 0 {
		t.Error("keys that are not in use are remembered")
	}
}

type noTenantsCreated struct{}

func (noTenantsCreated) CountCreated(context.Context, string, time.Time) (tenants, recent int, err error) {
	return 0, 0, nil
}

// A person may create many tenants at once before any of them is shown.
func TestTenantsAreCountedByTurnsFromTheFirst(t *testing.T) {
	_, w := newMemory()
	_, release, err := CountCreated(t.Context(), w, noTenantsCreated{}, "u")
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := CountCreated(impatient, w, noTenantsCreated{}, "u"); commands.KindOf(err) != commands.TooMany {
		t.Errorf("a second is counted before the first is released: %v", err)
	}
	release()
}

// A stale list does not show all tenants that a person has created.
func TestTenantsAreNotCountedWhileTheirListIsBehind(t *testing.T) {
	store, w := newMemory()
	given(t, w, 0)
	behind := NewWriter(store, func(_ context.Context, _ events.Position, names []string) bool {
		return !slices.Contains(names, "tenant.")
	}, NoQuotas{}, time.Now)
	if _, _, err := CountCreated(t.Context(), behind, noTenantsCreated{}, "u"); commands.KindOf(err) != commands.Unavailable {
		t.Errorf("behind the log, they are counted: %v", err)
	}
	if len(behind.counting.keys) > 0 {
		t.Error("keys that are not in use are remembered")
	}
}
