// Package quota limits how much a caller may do: requests a minute by plan and client address, wrong secrets, and
// concurrent expensive work.
package quota

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

// QueueLimits limits the work of a Queue.
type QueueLimits struct {
	Slots       int           // concurrent work
	FlowSlots   int           // concurrent work of a flow
	FlowWaiting int           // waiting work of a flow
	Waiting     int           // waiting work of all flows
	Timeout     time.Duration // the longest wait for a slot
	// CooldownFactor is the cooldown of a flow with waiting work, as a multiple of the duration of the work that just
	// ended. Work shorter than a quantum has none.
	CooldownFactor int
}

// Queue shares its slots fairly between flows. A flow is all work that is counted together: a tenant's, a creator's
// free tenants', a person's or a client network's. The next free one goes to the flow that has used the least time:
// start-time fair queueing (Goyal, Vin, Cheng 1996). An idle flow does not save up time for later.
type Queue struct {
	limits QueueLimits

	mu          sync.Mutex
	free        int
	flows       map[string]*flow
	queued      []*flow       // flows with waiting work
	leftBySweep int           // number of flows after the last sweep
	virtualTime time.Duration // used time of a flow that is always active

	waiting atomic.Int64
}

type flow struct {
	used    time.Duration
	held    []*Slot
	waiting []*waiter
	cooling bool
}

type waiter struct {
	slot *Slot
	in   chan struct{} // closed once the slot is taken
}

// NewQueue returns a queue.
func NewQueue(limits QueueLimits) *Queue {
	return &Queue{limits: limits, free: limits.Slots, flows: map[string]*flow{}}
}

// Limits returns the queue's limits.
func (q *Queue) Limits() QueueLimits { return q.limits }

// FlowSlots returns the limit of a flow's concurrent work.
func (q *Queue) FlowSlots() int { return q.limits.FlowSlots }

var (
	// ErrFlowBusy reports that the flow has reached its limit of running or waiting work.
	ErrFlowBusy = errors.New("too much work of the flow is in progress")
	// ErrNodeBusy reports that the work of all flows has reached the limit.
	ErrNodeBusy = errors.New("too much work is in progress")
)

// Slot is a slot that a flow waits for, holds or has released. It is not safe for concurrent use.
type Slot struct {
	queue   *Queue
	id      string // of the flow
	flow    *flow
	held    bool
	began   time.Time // when the slot was taken
	charged time.Time // until when the flow's used time includes it
	yielded time.Time // when Pace last yielded the processor
}

// Enter waits for a slot. It returns ErrFlowBusy, ErrNodeBusy or ctx's error.
func (q *Queue) Enter(ctx context.Context, flow string) (*Slot, error) {
	s := &Slot{queue: q, id: flow}
	w, err := s.join(false)
	if w == nil {
		return s, err
	}
	timer := time.NewTimer(q.limits.Timeout)
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

// Leave releases the slot if it is held.
func (s *Slot) Leave() {
	if !s.held {
		return
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.charge(time.Now())
	s.coolDown()
	s.leave()
}

func (s *Slot) leave() {
	s.held = false
	s.flow.held = slices.DeleteFunc(s.flow.held, func(other *Slot) bool { return other == s })
	s.queue.free++
	s.queue.grant()
	s.queue.sweep()
}

const maxCooldown = 500 * time.Millisecond

// coolDown starts a cooldown of the flow if more of its work waits. Otherwise each call of other flows would wait for a
// piece of a flow with endless work.
func (s *Slot) coolDown() {
	own, q := s.flow, s.queue
	took := time.Since(s.began)
	if q.limits.CooldownFactor == 0 || len(own.waiting) == 0 || took < quantum {
		return
	}
	own.cooling = true
	time.AfterFunc(min(time.Duration(q.limits.CooldownFactor)*took, maxCooldown), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		own.cooling = false
		q.grant()
	})
}

// leaveToCoolDown releases the slot if the flow must cool down, and reports whether it did.
func (s *Slot) leaveToCoolDown() bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.coolDown(); !s.flow.cooling {
		return false
	}
	s.charge(time.Now())
	s.leave()
	return true
}

// Yield releases the slot if another flow that has used less time waits for one, and reports whether it did.
func (s *Slot) Yield() bool {
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

// Resume waits for a slot again, ahead of other work of the flow. It does nothing if the slot is held. Its error is
// ctx's.
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
	// Pace yields the processor every yieldInterval, and the slot every quantum.
	yieldInterval = 100 * time.Microsecond
	quantum       = 2 * time.Millisecond
)

// Pace lets other work run. Long work must call it often. If it returns ctx's error, the slot is released.
func (s *Slot) Pace(ctx context.Context) error {
	now := time.Now()
	if now.Sub(s.yielded) < yieldInterval {
		return nil
	}
	if now.Sub(s.charged) >= quantum && s.queue.waiting.Load() > 0 && (s.Yield() || s.leaveToCoolDown()) {
		if err := s.Resume(ctx); err != nil {
			return err
		}
	}
	runtime.Gosched()
	s.yielded = time.Now()
	return nil
}

// join takes a slot or queues for one. Resumed work was admitted before: it goes to the front of its flow and ignores
// the limits.
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
	case q.free > 0 && !own.cooling && len(own.held) < q.limits.FlowSlots && (len(own.waiting) == 0 || resumed):
		// no waiting work could take the slot: it would have it already
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

// grant gives free slots to waiting work.
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

// idle reports whether a flow has neither running nor waiting work.
func (f *flow) idle() bool { return len(f.held) == 0 && len(f.waiting) == 0 }

// next returns the waiting flow that has used the least time and may have a slot, or nil.
func (q *Queue) next(now time.Time) (next *flow, least time.Duration) {
	for _, f := range q.queued {
		if used := f.usedBy(now); !f.cooling && len(f.held) < q.limits.FlowSlots && (next == nil || used < least) {
			next, least = f, used
		}
	}
	return next, least
}

// usedBy returns the time that a flow has used until now, including its running work.
func (f *flow) usedBy(now time.Time) time.Duration {
	used := f.used
	for _, slot := range f.held {
		used += now.Sub(slot.charged)
	}
	return used
}

// charge adds what the slot used to its flow. The virtual time advances by the share of each active flow, so that ever
// new flows, which begin at it, do not come before those that have used something.
func (s *Slot) charge(now time.Time) {
	took, q := now.Sub(s.charged), s.queue
	s.flow.used += took
	q.virtualTime += took / time.Duration(max(1, len(q.queued)+q.limits.Slots-q.free))
	s.charged = now
}

// giveUp leaves the queue and returns why the slot was not granted. It returns nil if the slot was granted meanwhile.
func (s *Slot) giveUp(w *waiter) (busy error) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.held {
		return nil
	}
	s.drop(w)
	busy = ErrNodeBusy
	if len(s.flow.held) >= s.queue.limits.FlowSlots || s.flow.cooling {
		busy = ErrFlowBusy
	}
	s.queue.sweep()
	return busy
}

// drop removes a waiter from the queue.
func (s *Slot) drop(w *waiter) {
	own, q := s.flow, s.queue
	own.waiting = slices.DeleteFunc(own.waiting, func(other *waiter) bool { return other == w })
	if len(own.waiting) == 0 {
		q.queued = slices.DeleteFunc(q.queued, func(other *flow) bool { return other == own })
	}
	q.waiting.Add(-1)
}

// maxIdle limits the idle flows that a sweep leaves.
const maxIdle = 10_000

// sweep removes idle flows whose used time no longer matters: all if the queue is idle, otherwise once flows have
// doubled since the last sweep. Beyond maxIdle flows it also removes others.
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
