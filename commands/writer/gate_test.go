package writer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flagledger/commands"
)

func TestGate(t *testing.T) {
	t.Run("as many as it lets in", func(t *testing.T) {
		g := newGate(3)
		var inside [2]atomic.Int32
		var running sync.WaitGroup
		for i := range 200 {
			running.Go(func() {
				key := i % 2
				leave, err := g.enter(t.Context(), fmt.Sprint(key))
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside[key].Add(1); n > 3 {
					t.Errorf("%d are inside", n)
				}
				runtime.Gosched() // lets others enter meanwhile
				inside[key].Add(-1)
				leave()
			})
		}
		running.Wait()
		if len(g.keys) > 0 {
			t.Errorf("it remembers %d keys", len(g.keys))
		}
	})
	t.Run("who gives up", func(t *testing.T) {
		g := newGate(1)
		leave, _ := g.enter(t.Context(), "k")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(ctx, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		leave()
		if leave, err := g.enter(t.Context(), "k"); err != nil {
			t.Error(err)
		} else {
			leave()
		}
		if len(g.keys) > 0 {
			t.Errorf("it remembers %d keys", len(g.keys))
		}
	})
	t.Run("a rest where others wait, and none else", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newCooldownGate(3)
			enter := func() (leave func(), waited time.Duration) {
				began := time.Now()
				leave, err := g.enter(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				return leave, time.Since(began)
			}
			for range 2 {
				leave, waited := enter()
				if waited > 0 {
					t.Errorf("one who is alone waited for %v", waited)
				}
				time.Sleep(2 * time.Millisecond)
				leave()
			}
			for took, want := range map[time.Duration]time.Duration{2 * time.Millisecond: 8 * time.Millisecond, time.Second: time.Second + maxGateCooldown} {
				first, _ := enter()
				done := make(chan time.Duration)
				go func() {
					leave, waited := enter()
					leave()
					done <- waited
				}()
				time.Sleep(took)
				first()
				if waited := <-done; waited != want {
					t.Errorf("after one who took %v the next waited for %v", took, waited)
				}
			}
			if len(g.keys) > 0 {
				t.Errorf("it remembers %d keys", len(g.keys))
			}
		})
	})
	t.Run("in the order of their coming", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(1)
			leave, _ := g.enter(t.Context(), "k")
			var order []int
			for i := range 10 {
				go func() {
					leave, err := g.enter(t.Context(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					order = append(order, i)
					leave()
				}()
				synctest.Wait()
			}
			leave()
			synctest.Wait()
			if fmt.Sprint(order) != "[0 1 2 3 4 5 6 7 8 9]" {
				t.Errorf("they came in as %v", order)
			}
		})
	})
}

func TestATenantThatNamesAStreamOfAnotherKeepsNobodyWaiting(t *testing.T) {
	_, w := newMemory()
	stream := commands.ProjectRef{TenantID: "t", ID: "p"}.Stream()
	leave, err := w.enterStream(t.Context(), By{}, "stranger", stream)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.enterStream(over, By{}, "stranger", stream); err == nil {
		t.Error("two commands of a tenant are let in to one stream")
	}
	if leave, err := w.enterStream(over, By{}, "t", stream); err != nil {
		t.Errorf("the tenant waits for another: %v", err)
	} else {
		leave()
	}
}
