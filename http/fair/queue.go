// Package fair lets the costly work of tenants in by turns, so that one who has much of it does not keep the others waiting.
package fair

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bounds what a Queue lets in.
type Limits struct {
	Slots     int           // work that goes on at once
	Each      int           // work of a tenant that goes on at once
	PerTenant int           // work of a tenant that waits
	Waiting   int           // work of all tenants that waits
	Patience  time.Duration // the longest that work waits to begin
	Rest      int           // how many times as long as its work took a tenant waits, before its next, where more of it waits already
}

// Queue has a number of slots. The next one goes to the tenant that has had least of them lately, in time, among those that wait. That is start-time fair
// queueing (Goyal, Vin, Cheng 1996) with the measured time as the cost: what a tenant has used counts from where the least that is served stands, so that
// nobody saves up for later.
type Queue struct {
	limits Limits

	mu      sync.Mutex
	free    int
	tenants map[string]*tenant
	queued  []*tenant     // those that wait
	swept   int           // how many tenants were left when idle ones were last removed
	clock   time.Duration // what the tenant that got a slot last had used then

	waiting atomic.Int64
}

type tenant struct {
	used    time.Duration
	held    []*Turn
	waiting []*waiter
	resting bool
}

type waiter struct {
	turn *Turn
	in   chan struct{} // closed with a slot taken
}

// New returns a queue.
func New(limits Limits) *Queue {
	return &Queue{limits: limits, free: limits.Slots, tenants: map[string]*tenant{}}
}

// Each is how much work of a tenant goes on at once.
func (q *Queue) Each() int { return q.limits.Each }

var (
	// ErrTenantBusy says that the tenant has all that it may have of slots, or of places among those that wait.
	ErrTenantBusy = errors.New("too much of the tenant's work is under way")
	// ErrNodeBusy says that the work of others is in the way.
	ErrNodeBusy = errors.New("too much work is under way")
)

// Turn is a slot of a tenant. One goroutine uses it.
type Turn struct {
	queue  *Queue
	id     string
	tenant *tenant
	in     bool
	began  time.Time // when the slot was taken
	since  time.Time // when it was, or when its use was charged last
	gave   time.Time // when others were let run last
}

// Enter waits for a slot. Its errors are ErrTenantBusy, ErrNodeBusy and that of ctx.
func (q *Queue) Enter(ctx context.Context, tenantID string) (*Turn, error) {
	t := &Turn{queue: q, id: tenantID}
	w, err := t.ask(q.limits.PerTenant, q.limits.Waiting)
	if w == nil {
		return t, err
	}
	timer := time.NewTimer(q.limits.Patience)
	defer timer.Stop()
	select {
	case <-w.in:
		return t, nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	busy := t.giveUp(w)
	if busy == nil {
		return t, nil
	}
	return nil, cmp.Or(err, busy)
}

// Leave gives the slot back, if the turn has it.
func (t *Turn) Leave() {
	if !t.in {
		return
	}
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.charge(time.Now())
	t.rest()
	t.leave()
}

func (t *Turn) leave() {
	t.in = false
	t.tenant.held = slices.DeleteFunc(t.tenant.held, func(other *Turn) bool { return other == t })
	t.queue.free++
	t.queue.grant()
	t.queue.sweep()
}

const maxRest = 500 * time.Millisecond

// rest keeps the tenant from slots for a while, where more of its work waits: without a pause one who has ever more of it would keep others slow at all
// times, though each of their calls may wait for no more than one of its own.
func (t *Turn) rest() {
	own, q := t.tenant, t.queue
	if q.limits.Rest == 0 || len(own.waiting) == 0 {
		return
	}
	own.resting = true
	time.AfterFunc(min(time.Duration(q.limits.Rest)*time.Since(t.began), maxRest), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		own.resting = false
		q.grant()
	})
}

// GiveWay gives the slot back if another tenant that has used less waits for one. It reports whether it did.
func (t *Turn) GiveWay() bool {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	t.charge(now)
	next, least := q.next(now)
	if next == nil || next == t.tenant || least >= t.tenant.usedBy(now) {
		return false
	}
	t.leave()
	return true
}

// Resume waits for a slot for work that has given its own back, before other work of the tenant. Its error is that of ctx.
func (t *Turn) Resume(ctx context.Context) error {
	if t.in {
		return nil
	}
	w, _ := t.ask(0, 0)
	if w == nil {
		return nil
	}
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
		if t.giveUp(w) != nil {
			return ctx.Err()
		}
		return nil
	}
}

const (
	// breath is how long work goes on before goroutines that wait for a processor are let run, quantum before tenants that wait for a slot are.
	breath  = 100 * time.Microsecond
	quantum = 2 * time.Millisecond
)

// Pace is to be called often by work that takes long: it lets others run. Its error is that of ctx, with which the slot is lost.
func (t *Turn) Pace(ctx context.Context) error {
	now := time.Now()
	if now.Sub(t.gave) < breath {
		return nil
	}
	if now.Sub(t.since) >= quantum && t.queue.waiting.Load() > 0 && t.GiveWay() {
		if err := t.Resume(ctx); err != nil {
			return err
		}
	}
	runtime.Gosched()
	t.gave = time.Now()
	return nil
}

// ask takes a slot, or else queues up: at the end where there are bounds, and at the front of the tenant's own without.
func (t *Turn) ask(perTenant, waiting int) (*waiter, error) {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.tenants[t.id]
	if own == nil {
		own = &tenant{used: q.clock}
		q.tenants[t.id] = own
	}
	if len(own.held) == 0 && len(own.waiting) == 0 {
		own.used = max(own.used, q.clock)
	}
	t.tenant = own
	bounded := waiting > 0
	switch {
	case q.free > 0 && !own.resting && len(own.held) < q.limits.Each && (len(own.waiting) == 0 || !bounded):
		// Nobody waits who could have the slot: they would have it.
		q.take(t, time.Now())
		return nil, nil
	case bounded && len(own.waiting) >= perTenant:
		return nil, ErrTenantBusy
	case bounded && int(q.waiting.Load()) >= waiting:
		return nil, ErrNodeBusy
	}
	w := &waiter{t, make(chan struct{})}
	if len(own.waiting) == 0 {
		q.queued = append(q.queued, own)
	}
	if bounded {
		own.waiting = append(own.waiting, w)
	} else {
		own.waiting = slices.Insert(own.waiting, 0, w)
	}
	q.waiting.Add(1)
	return w, nil
}

func (q *Queue) take(t *Turn, now time.Time) {
	q.free--
	q.clock = max(q.clock, t.tenant.usedBy(now))
	t.in, t.began, t.since, t.gave = true, now, now, now
	t.tenant.held = append(t.tenant.held, t)
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
		w.turn.drop(w)
		q.take(w.turn, now)
		close(w.in)
	}
}

// next is the tenant that has used least of those that wait and may have a slot; nil where there is none.
func (q *Queue) next(now time.Time) (next *tenant, least time.Duration) {
	for _, t := range q.queued {
		if used := t.usedBy(now); !t.resting && len(t.held) < q.limits.Each && (next == nil || used < least) {
			next, least = t, used
		}
	}
	return next, least
}

// usedBy is what a tenant has used, with what its work under way has used so far.
func (t *tenant) usedBy(now time.Time) time.Duration {
	used := t.used
	for _, turn := range t.held {
		used += now.Sub(turn.since)
	}
	return used
}

func (t *Turn) charge(now time.Time) {
	t.tenant.used += now.Sub(t.since)
	t.since = now
}

// giveUp leaves the queue and tells who is busy. It returns nil where the turn has just come.
func (t *Turn) giveUp(w *waiter) (busy error) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.in {
		return nil
	}
	t.drop(w)
	busy = ErrNodeBusy
	if len(t.tenant.held) >= t.queue.limits.Each || t.tenant.resting {
		busy = ErrTenantBusy
	}
	t.queue.sweep()
	return busy
}

// drop takes a waiter out of the queue.
func (t *Turn) drop(w *waiter) {
	own, q := t.tenant, t.queue
	own.waiting = slices.DeleteFunc(own.waiting, func(other *waiter) bool { return other == w })
	if len(own.waiting) == 0 {
		q.queued = slices.DeleteFunc(q.queued, func(other *tenant) bool { return other == own })
	}
	q.waiting.Add(-1)
}

// sweep removes tenants that have nothing under way and whose use no longer counts: all where the queue is idle, and else once there are many more than
// were left the last time.
func (q *Queue) sweep() {
	switch {
	case q.free == q.limits.Slots && len(q.queued) == 0:
		clear(q.tenants)
		q.swept = 0
		return
	case len(q.tenants) <= 2*q.swept+16:
		return
	}
	for id, t := range q.tenants {
		if len(t.held) == 0 && len(t.waiting) == 0 && t.used <= q.clock {
			delete(q.tenants, id)
		}
	}
	q.swept = len(q.tenants)
}
