// Package fair shares slots for costly work between flows, so that one with much of it does not keep the others
// waiting. A flow is all work that counts together: that of a tenant, of a creator's unpaid tenants, of a person, or of
// a site or network.
package fair

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bounds what a Queue lets in.
type Limits struct {
	Slots       int           // work that goes on at once
	FlowSlots   int           // work of a flow that goes on at once
	FlowWaiting int           // work of a flow that waits
	Waiting     int           // work of all flows that waits
	Patience    time.Duration // the longest that work waits to begin
	// Rest makes a flow with more work waiting pause after each piece that took a quantum or longer: for so many times as
	// long as it took.
	Rest int
}

// Queue has a number of slots. The next one goes to the waiting flow that has used least time lately: start-time fair
// queueing (Goyal, Vin, Cheng 1996). Use counts from the least that is served, so that nobody saves up for later.
type Queue struct {
	limits Limits

	mu          sync.Mutex
	free        int
	flows       map[string]*flow
	queued      []*flow       // those that wait
	leftBySweep int           // how many flows were left when idle ones were last removed
	virtualTime time.Duration // what the flow that got a slot last had used then

	waiting atomic.Int64
}

type flow struct {
	used    time.Duration
	held    []*Slot
	waiting []*waiter
	resting bool
}

type waiter struct {
	slot *Slot
	in   chan struct{} // closed with a slot taken
}

// New returns a queue.
func New(limits Limits) *Queue {
	return &Queue{limits: limits, free: limits.Slots, flows: map[string]*flow{}}
}

// Limits returns what the queue lets in.
func (q *Queue) Limits() Limits { return q.limits }

// FlowSlots is how much work of a flow goes on at once.
func (q *Queue) FlowSlots() int { return q.limits.FlowSlots }

var (
	// ErrFlowBusy says that the flow has all that it may have of slots, or of places among those that wait.
	ErrFlowBusy = errors.New("too much of the flow's work is under way")
	// ErrNodeBusy says that the work of others is in the way.
	ErrNodeBusy = errors.New("too much work is under way")
)

// Slot is a slot that a flow waits for, holds, or has given back. One goroutine uses it.
type Slot struct {
	queue   *Queue
	id      string // of the flow
	flow    *flow
	held    bool
	began   time.Time // when the slot was taken
	charged time.Time // up to when the flow's use includes it
	yielded time.Time // when goroutines that wait for a processor were last let run
}

// Enter waits for a slot. Its errors are ErrFlowBusy, ErrNodeBusy and that of ctx.
func (q *Queue) Enter(ctx context.Context, flow string) (*Slot, error) {
	s := &Slot{queue: q, id: flow}
	w, err := s.join(false)
	if w == nil {
		return s, err
	}
	timer := time.NewTimer(q.limits.Patience)
	defer timer.Stop()
	select {
	case <-w.in:
		return s, nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	busy := s.giveUp(w)
	if busy == nil {
		return s, nil
	}
	return nil, cmp.Or(err, busy)
}

// Leave gives the slot back, if it is held.
func (s *Slot) Leave() {
	if !s.held {
		return
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.charge(time.Now())
	s.rest()
	s.leave()
}

func (s *Slot) leave() {
	s.held = false
	s.flow.held = slices.DeleteFunc(s.flow.held, func(other *Slot) bool { return other == s })
	s.queue.free++
	s.queue.grant()
	s.queue.sweep()
}

const maxRest = 500 * time.Millisecond

// rest keeps the flow from slots for a while if more of its work waits. Else a flow with ever more work would make each
// call of others wait for one of its own.
func (s *Slot) rest() {
	own, q := s.flow, s.queue
	took := time.Since(s.began)
	if q.limits.Rest == 0 || len(own.waiting) == 0 || took < quantum {
		return
	}
	own.resting = true
	time.AfterFunc(min(time.Duration(q.limits.Rest)*took, maxRest), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		own.resting = false
		q.grant()
	})
}

// pause gives the slot back if the flow is to rest. It reports whether it did.
func (s *Slot) pause() bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.rest(); !s.flow.resting {
		return false
	}
	s.charge(time.Now())
	s.leave()
	return true
}

// GiveWay gives the slot back if another flow that has used less waits for one. It reports whether it did.
func (s *Slot) GiveWay() bool {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	s.charge(now)
	next, least := q.next(now)
	if next == nil || next == s.flow || least >= s.flow.usedBy(now) {
		return false
	}
	s.leave()
	return true
}

// Resume waits for a slot for work that has given its own back, before other work of the flow. Its error is that of
// ctx.
func (s *Slot) Resume(ctx context.Context) error {
	if s.held {
		return nil
	}
	w, _ := s.join(true)
	if w == nil {
		return nil
	}
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
		if s.giveUp(w) != nil {
			return ctx.Err()
		}
		return nil
	}
}

const (
	// Work lets goroutines that wait for a processor run once in each yieldInterval, and others that wait for a slot once
	// in each quantum.
	yieldInterval = 100 * time.Microsecond
	quantum       = 2 * time.Millisecond
)

// Pace is to be called often by work that takes long: it lets others run. Its error is that of ctx, with which the slot
// is lost.
func (s *Slot) Pace(ctx context.Context) error {
	now := time.Now()
	if now.Sub(s.yielded) < yieldInterval {
		return nil
	}
	if now.Sub(s.charged) >= quantum && s.queue.waiting.Load() > 0 && (s.GiveWay() || s.pause()) {
		if err := s.Resume(ctx); err != nil {
			return err
		}
	}
	runtime.Gosched()
	s.yielded = time.Now()
	return nil
}

// join takes the slot or queues up for it. Work that is resumed has been let in before: it goes to the front of the
// flow's own, past all bounds.
func (s *Slot) join(resumed bool) (*waiter, error) {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.flows[s.id]
	if own == nil {
		own = &flow{used: q.virtualTime}
		q.flows[s.id] = own
	}
	if own.idle() {
		own.used = max(own.used, q.virtualTime)
	}
	s.flow = own
	switch {
	case q.free > 0 && !own.resting && len(own.held) < q.limits.FlowSlots && (len(own.waiting) == 0 || resumed):
		// Nobody waits who could have the slot: they would have it.
		q.take(s, time.Now())
		return nil, nil
	case !resumed && len(own.waiting) >= q.limits.FlowWaiting:
		return nil, ErrFlowBusy
	case !resumed && int(q.waiting.Load()) >= q.limits.Waiting:
		return nil, ErrNodeBusy
	}
	w := &waiter{s, make(chan struct{})}
	if len(own.waiting) == 0 {
		q.queued = append(q.queued, own)
	}
	if resumed {
		own.waiting = slices.Insert(own.waiting, 0, w)
	} else {
		own.waiting = append(own.waiting, w)
	}
	q.waiting.Add(1)
	return w, nil
}

func (q *Queue) take(s *Slot, now time.Time) {
	q.free--
	q.virtualTime = max(q.virtualTime, s.flow.usedBy(now))
	s.held, s.began, s.charged, s.yielded = true, now, now, now
	s.flow.held = append(s.flow.held, s)
}

// grant gives free slots to those that wait.
func (q *Queue) grant() {
	for q.free > 0 {
		now := time.Now()
		next, _ := q.next(now)
		if next == nil {
			return
		}
		w := next.waiting[0]
		w.slot.drop(w)
		q.take(w.slot, now)
		close(w.in)
	}
}

// idle reports whether a flow has nothing under way.
func (f *flow) idle() bool { return len(f.held) == 0 && len(f.waiting) == 0 }

// next is the flow that has used least of those that wait and may have a slot; nil where there is none.
func (q *Queue) next(now time.Time) (next *flow, least time.Duration) {
	for _, f := range q.queued {
		if used := f.usedBy(now); !f.resting && len(f.held) < q.limits.FlowSlots && (next == nil || used < least) {
			next, least = f, used
		}
	}
	return next, least
}

// usedBy is what a flow has used, with what its work under way has used so far.
func (f *flow) usedBy(now time.Time) time.Duration {
	used := f.used
	for _, slot := range f.held {
		used += now.Sub(slot.charged)
	}
	return used
}

func (s *Slot) charge(now time.Time) {
	s.flow.used += now.Sub(s.charged)
	s.charged = now
}

// giveUp leaves the queue and tells who is busy. It returns nil where the slot has just come.
func (s *Slot) giveUp(w *waiter) (busy error) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.held {
		return nil
	}
	s.drop(w)
	busy = ErrNodeBusy
	if len(s.flow.held) >= s.queue.limits.FlowSlots || s.flow.resting {
		busy = ErrFlowBusy
	}
	s.queue.sweep()
	return busy
}

// drop takes a waiter out of the queue.
func (s *Slot) drop(w *waiter) {
	own, q := s.flow, s.queue
	own.waiting = slices.DeleteFunc(own.waiting, func(other *waiter) bool { return other == w })
	if len(own.waiting) == 0 {
		q.queued = slices.DeleteFunc(q.queued, func(other *flow) bool { return other == own })
	}
	q.waiting.Add(-1)
}

// maxIdle is how many flows with nothing under way are left when idle ones are removed.
const maxIdle = 10_000

// sweep removes idle flows whose use no longer counts: all if the queue is idle, and else once there are many more than
// were left the last time. If more than maxIdle are left, it also removes some whose use still counts.
func (q *Queue) sweep() {
	switch {
	case q.free == q.limits.Slots && len(q.queued) == 0:
		clear(q.flows)
		q.leftBySweep = 0
		return
	case len(q.flows) <= 2*q.leftBySweep+16:
		return
	}
	maps.DeleteFunc(q.flows, func(_ string, f *flow) bool { return f.idle() && f.used <= q.virtualTime })
	for id, f := range q.flows {
		if len(q.flows) <= maxIdle {
			break
		}
		if f.idle() {
			delete(q.flows, id)
		}
	}
	q.leftBySweep = len(q.flows)
}
