package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// work enters, works in small steps, and leaves. It returns the time of its end since the start of the test.
func work(t *testing.T, q *Queue, flow string, began time.Time, steps int, step time.Duration) time.Duration {
	t.Helper()
	slot, err := q.Enter(t.Context(), flow)
	if err != nil {
		t.Errorf("%s: %v", flow, err)
		return 0
	}
	defer slot.Leave()
	for range steps {
		time.Sleep(step)
		if err := slot.Pace(t.Context()); err != nil {
			t.Errorf("%s: %v", flow, err)
		}
	}
	return time.Since(began)
}

func TestAFlowWithMuchWorkDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 100, Waiting: 1000, Timeout: time.Hour})
		began := time.Now()
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { work(t, q, "much", began, 5000, time.Millisecond) })
		}
		synctest.Wait()
		time.Sleep(time.Second)
		for range 10 {
			from := time.Now()
			if took := work(t, q, "little", from, 1, time.Millisecond); took > 2*quantum+time.Millisecond {
				t.Errorf("it took %v", took)
			}
			time.Sleep(100 * time.Millisecond)
		}
		all.Wait()
		if took := time.Since(began); took > 201*time.Second {
			t.Errorf("all of it took %v: the slot was idle", took)
		}
		if len(q.flows) != 0 {
			t.Errorf("the queue is idle and knows %d flows", len(q.flows))
		}
	})
}

// A flow that comes again waits for a few pieces of each new flow at most, however many a botnet opens.
func TestNewFlowsDoNotStarveOneThatComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 100, Waiting: 1000, Timeout: time.Hour})
		const crowd, piece = 40, 10 * time.Millisecond
		once := func(flow string) {
			slot, err := q.Enter(t.Context(), flow)
			if err != nil {
				t.Error(err)
				return
			}
			defer slot.Leave()
			time.Sleep(piece)
		}
		var over atomic.Bool
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() {
				for n := 0; n < 1000 && !over.Load(); n++ {
					once(fmt.Sprint(i, "-", n))
				}
			})
		}
		for range 10 {
			began := time.Now()
			if once("again"); time.Since(began) > 3*crowd*piece {
				t.Errorf("it took %v", time.Since(began))
			}
		}
		over.Store(true)
		all.Wait()
	})
}

// A queue that is never idle forgets flows too.
func TestAQueueForgetsFlowsWhileItIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 2, FlowSlots: 1, FlowWaiting: 1, Waiting: 1, Timeout: time.Hour})
		var before *Slot
		for i := range 5 * maxIdle {
			slot, err := q.Enter(t.Context(), fmt.Sprint("flow ", i))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			if before != nil {
				before.Leave()
			}
			before = slot
			if n := len(q.flows); n > 2*maxIdle+20 {
				t.Fatalf("after %d flows it knows %d", i, n)
			}
		}
		before.Leave()
	})
}

func TestAFlowWhoseWorkQueuesUpRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 100, Waiting: 1000, Timeout: time.Hour, CooldownFactor: 3})
		began := time.Now()
		for range 10 {
			work(t, q, "one after the other", began, 1, 10*time.Millisecond)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("work that never waits took %v in all, want 100ms", took)
		}
		began = time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { work(t, q, "much", began, 1, 10*time.Millisecond) })
		}
		synctest.Wait()
		time.Sleep(15 * time.Millisecond) // the first piece is done
		if took := work(t, q, "little", time.Now(), 1, time.Millisecond); took != time.Millisecond {
			t.Errorf("another's took %v while the flow rests", took)
		}
		all.Wait()
		if took := time.Since(began); took != 370*time.Millisecond {
			t.Errorf("work that queues up took %v, want 10 pieces of 10ms and 9 rests of 30ms", took)
		}
		if len(q.flows) != 0 || q.free != 1 {
			t.Errorf("the queue is left with %d flows and %d slots", len(q.flows), q.free)
		}
	})
}

func TestWorkThatTakesLongRestsInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 100, Waiting: 1000, Timeout: time.Hour, CooldownFactor: 1})
		began := time.Now()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { work(t, q, "a", began, 10, 10*time.Millisecond) })
		}
		all.Wait()
		// The first yields ten times, because the second waits; the second need not.
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("they took %v together", took)
		}
		if len(q.flows) != 0 || q.free != 1 {
			t.Errorf("the queue is left with %d flows and %d slots", len(q.flows), q.free)
		}
	})
}

func TestFlowsShareTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 100, Waiting: 1000, Timeout: time.Hour})
		began := time.Now()
		done := map[string]*time.Duration{"long": new(time.Duration), "short": new(time.Duration)}
		var all sync.WaitGroup
		all.Go(func() { *done["long"] = work(t, q, "long", began, 1000, time.Millisecond) })
		all.Go(func() {
			for range 10 {
				*done["short"] = work(t, q, "short", began, 50, time.Millisecond)
			}
		})
		all.Wait()
		// Two half seconds of work take a second together; then the long one is alone.
		if short, long := *done["short"], *done["long"]; short < 900*time.Millisecond || short > 1150*time.Millisecond ||
			long > 1510*time.Millisecond {
			t.Errorf("they were done after %v and %v", short, long)
		}
	})
}

func TestWorkOfOneFlowComesInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 2, FlowSlots: 1, FlowWaiting: 100, Waiting: 1000, Timeout: time.Hour})
		var done []int
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				slot, _ := q.Enter(t.Context(), "a")
				defer slot.Leave()
				time.Sleep(10 * time.Millisecond)
				done = append(done, i)
			})
			synctest.Wait()
		}
		all.Wait()
		if got := fmt.Sprint(done); got != "[0 1 2 3 4]" {
			t.Errorf("it was done in the order %s", got)
		}
	})
}

func TestBoundsOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 2, FlowSlots: 1, FlowWaiting: 3, Waiting: 5, Timeout: 5 * time.Second})
		enter := func(flow string, want error) {
			t.Helper()
			if _, err := q.Enter(t.Context(), flow); !errors.Is(err, want) {
				t.Errorf("%s is answered %v, want %v", flow, err, want)
			}
		}
		a, _ := q.Enter(t.Context(), "a")
		b, _ := q.Enter(t.Context(), "b")
		waited := make([]error, 5)
		var all sync.WaitGroup
		for i, flow := range []string{"a", "a", "a", "c", "b"} {
			all.Go(func() { _, waited[i] = q.Enter(t.Context(), flow) })
			synctest.Wait()
		}
		enter("a", ErrFlowBusy) // three wait
		enter("b", ErrNodeBusy) // five wait
		all.Wait()
		if got, want := fmt.Sprint(waited), fmt.Sprint([]error{ErrFlowBusy, ErrFlowBusy, ErrFlowBusy, ErrNodeBusy, ErrFlowBusy}); got != want {
			t.Errorf("those that waited too long are answered %s", got)
		}
		a.Leave()
		a.Leave()
		b.Leave()
		enter("a", nil)
		enter("b", nil)
	})
}

func TestWhoHasNothingUnderWayIsNotToBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 10, Waiting: 10, Timeout: time.Second})
		if _, err := q.Enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := q.Enter(t.Context(), "b"); !errors.Is(err, ErrNodeBusy) {
					t.Errorf("one of three that wait is answered %v", err)
				}
			})
		}
		all.Wait()
	})
}

func TestWorkThatGivesItsSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 3, Waiting: 5, Timeout: time.Hour})
		first, _ := q.Enter(t.Context(), "a")
		first.Leave() // while it writes to its client
		second, _ := q.Enter(t.Context(), "a")
		var order []string
		go func() {
			slot, _ := q.Enter(t.Context(), "a")
			order = append(order, "third")
			slot.Leave()
		}()
		synctest.Wait()
		go func() {
			if err := first.Resume(t.Context()); err != nil {
				t.Error(err)
			}
			order = append(order, "first")
			first.Leave()
		}()
		synctest.Wait()
		gone, goAway := context.WithCancel(t.Context())
		go func() {
			if _, err := q.Enter(gone, "a"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		goAway()
		synctest.Wait()
		second.Leave()
		synctest.Wait()
		if got := fmt.Sprint(order); got != "[first third]" {
			t.Errorf("they went on in the order %s", got)
		}
		if len(q.flows) != 0 || len(q.queued) != 0 || q.waiting.Load() != 0 || q.free != 1 {
			t.Errorf("the queue is left as %+v", q)
		}
	})
}
