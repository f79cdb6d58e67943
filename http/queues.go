package http

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"flagledger/http/quota"
)

// queues are what costly work waits in for a slot. Whoever waits in one holds no slot of another, with one exception: a
// slot of bodies is held for as long as the body is in memory. An evaluation of one flag waits in none, unless its
// comparisons take long.
type queues struct {
	evaluations *quota.Queue // evaluations of many flags, costly ones of one flag, and the reading of large bodies of both
	reads       *quota.Queue // reads of the database, among them that of an Idempotency-Key
	past        *quota.Queue // the folding of a flag of the past, and what is compiled or decided from it; flag by flag
	// changes about no tenant, sign-ups and sign-ins with an ID token, refreshes of sessions, and cleanups of sandboxes
	people   *quota.Queue
	payments *quota.Queue // calls of the payment provider that requests make
	// changes of flags with large bodies or costly rules, and reverts, from their body to the answer; not while they wait
	// for the stream
	changes *quota.Queue
	// the changes of a revert of many flags; flag by flag, but for large ones, which wait in changes
	reversals *quota.Queue
	signing   *quota.Queue // signing of machines' tokens
	// large bodies, from when more than largeBody of one has come to the answer; and flags of the past while they are
	// brought back
	bodies *quota.Queue
}

const (
	// largeBody is the size from which a body counts as costly, in bytes.
	largeBody = 32 << 10
	// queueTimeout is the longest wait of expensive work, if Options has no other.
	queueTimeout = 5 * time.Second
	// nodeWaiting is how much work waits in each queue at most, bodiesWaiting of that for large bodies: the beginning of
	// each is in memory.
	nodeWaiting    = 4000
	signingWaiting = 100 // requests of a flow for tokens
	bodiesWaiting  = 1000
)

// newQueues makes the queues of a node whose database takes so many reads at once. Work waits in them for queueTimeout
// at most.
func newQueues(reads int, timeout time.Duration) queues {
	half := func(n int) int { return max(1, n/2) }
	cores := half(runtime.GOMAXPROCS(0))
	return queues{
		evaluations: quota.NewQueue(
			quota.QueueLimits{
				Slots:          cores,
				FlowSlots:      half(cores),
				FlowWaiting:    1000,
				Waiting:        nodeWaiting,
				Timeout:        timeout,
				CooldownFactor: 2,
			},
		),
		reads: quota.NewQueue(
			quota.QueueLimits{Slots: reads, FlowSlots: half(reads), FlowWaiting: 100, Waiting: nodeWaiting, Timeout: timeout},
		),
		past: quota.NewQueue(
			quota.QueueLimits{
				Slots:          min(cores, half(reads)),
				FlowSlots:      1,
				FlowWaiting:    100,
				Waiting:        nodeWaiting,
				Timeout:        timeout,
				CooldownFactor: 5,
			},
		),
		people:   quota.NewQueue(quota.QueueLimits{Slots: 16, FlowSlots: 1, FlowWaiting: 100, Waiting: nodeWaiting, Timeout: timeout}),
		payments: quota.NewQueue(quota.QueueLimits{Slots: 4, FlowSlots: 1, FlowWaiting: 10, Waiting: nodeWaiting, Timeout: timeout}),
		changes: quota.NewQueue(
			quota.QueueLimits{Slots: 2, FlowSlots: 1, FlowWaiting: 100, Waiting: nodeWaiting, Timeout: timeout, CooldownFactor: 5},
		),
		reversals: quota.NewQueue(
			quota.QueueLimits{
				Slots:       revertsAtOnce,
				FlowSlots:   revertsAtOnce / 2,
				FlowWaiting: 10 * revertsAtOnce,
				Waiting:     nodeWaiting,
				Timeout:     timeout,
			},
		),
		signing: quota.NewQueue(
			quota.QueueLimits{
				Slots:       cores,
				FlowSlots:   half(cores),
				FlowWaiting: signingWaiting,
				Waiting:     nodeWaiting,
				Timeout:     timeout,
			},
		),
		bodies: quota.NewQueue(quota.QueueLimits{Slots: 128, FlowSlots: 8, FlowWaiting: 100, Waiting: bodiesWaiting, Timeout: timeout}),
	}
}

// queueOf is the queue that an operation waits in, from when its body has been read to its answer; nil for none.
func (a *API) queueOf(p *principal, need access, method string) *quota.Queue {
	switch {
	case need.who == anyone && !need.alone:
		return nil
	case method == http.MethodGet:
		return a.queues.reads
	case need.alone, p.tenant == nil:
		return a.queues.people
	default:
		return nil
	}
}

// enterQueue waits in a queue for a slot of a principal. Its error is a problem.
func (a *API) enterQueue(ctx context.Context, q *quota.Queue, p *principal) (*quota.Slot, error) {
	slot, err := q.Enter(ctx, a.workQuota(ctx, p))
	switch {
	case err == nil:
		return slot, nil
	case errors.Is(err, quota.ErrFlowBusy):
		return nil, noSlot(q.FlowSlots(),
			"too many costly requests that count together with this one are under way or waiting; this one was not carried out")
	default:
		return nil, newProblem(http.StatusServiceUnavailable,
			"too many costly requests are under way or waiting; this one was not carried out")
	}
}

// enterChanges waits for a slot for a costly change of a flag, unless the request has one already. Its error is a
// problem.
func (a *API) enterChanges(ctx context.Context) (leave func(), err error) {
	req := requestOf(ctx)
	if req.changeSlot != nil {
		return func() {}, nil
	}
	if req.changeSlot, err = a.enterQueue(ctx, a.queues.changes, principalOf(ctx)); err != nil {
		return nil, err
	}
	return req.changeSlot.Leave, nil
}

// enterRevert gives back the slot that a revert has among the changes because its body is large, as it is to wait in
// other queues first, and waits for one to hold the flag of then in memory, unless its body has that. Its error is a
// problem.
func (a *API) enterRevert(ctx context.Context) (leave func(), err error) {
	req := requestOf(ctx)
	if req.changeSlot != nil {
		req.changeSlot.Leave()
		req.changeSlot = nil
	}
	if req.largeBody {
		return func() {}, nil
	}
	slot, err := a.enterQueue(ctx, a.queues.bodies, principalOf(ctx))
	if err != nil {
		return nil, err
	}
	return slot.Leave, nil
}

// enterPast waits for a slot to add up what a flag was, in place of one for reads: that takes a processor rather than
// the database. Its error is a problem.
func (a *API) enterPast(ctx context.Context) (*quota.Slot, error) {
	if slot := requestOf(ctx).readSlot; slot != nil {
		slot.Leave()
	}
	return a.enterQueue(ctx, a.queues.past, principalOf(ctx))
}

// enterPastOnceCurrent is enterPast for what reads environments of then, too: it first waits as WaitUntilCurrent does,
// with the zero time for a version. Its error is a problem, or that of a query.
func (a *API) enterPastOnceCurrent(ctx context.Context, at time.Time) (*quota.Slot, error) {
	if err := a.Queries.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
		return nil, err
	}
	return a.enterPast(ctx)
}

// noSlot refuses what got no slot, because as much of the caller's is under way as may be at once.
func noSlot(atOnce int, why string) *problem {
	return tooManyRequests(quota.Spent(atOnce, time.Second), why)
}
