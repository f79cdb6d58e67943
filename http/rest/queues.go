package rest

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"flagledger/http/quota"
)

// queues limit concurrent expensive work, each by what it needs most. A request never waits for a slot while it holds
// one, except one of memory.
type queues struct {
	// CPU: evaluations of many flags and expensive ones of one flag, states of the past, large changes of flags and
	// reverts, and tokens of machines. A change does not hold its slot while it waits for its stream.
	CPU *quota.Queue
	// Database: reads, changes about no tenant, sign-ups and sign-ins, and reverted flags, one by one.
	Database *quota.Queue
	// Memory: large bodies from when more than LargeBody of one has come to the answer, reverts of many flags, and what
	// may wait for a provider: payments, passwords and sessions.
	Memory *quota.Queue
}

const (
	// LargeBody is the size from which a body counts as large, in bytes.
	LargeBody = 32 << 10
	// QueueTimeout is the longest wait for a slot, if Options has no other.
	QueueTimeout = 5 * time.Second
	// nodeWaiting limits the work that waits in a queue, memoryWaiting that for memory: the beginning of each body is in
	// memory.
	nodeWaiting   = 4000
	memoryWaiting = 1000
	flowWaiting   = 100 // requests of a flow
	cpuWaiting    = 1000
)

// newQueues returns the queues of a node whose database takes so many concurrent reads.
func newQueues(reads int, timeout time.Duration) queues {
	cores := cpuSlots()
	return queues{
		CPU: quota.NewQueue(quota.QueueLimits{
			Slots: cores, FlowSlots: cores / 2, FlowWaiting: cpuWaiting, Waiting: nodeWaiting, Timeout: timeout,
			CooldownFactor: 5,
		}),
		Database: quota.NewQueue(quota.QueueLimits{
			Slots: reads, FlowSlots: max(1, reads/2), FlowWaiting: flowWaiting, Waiting: nodeWaiting, Timeout: timeout,
		}),
		Memory: quota.NewQueue(quota.QueueLimits{
			Slots: 128, FlowSlots: 8, FlowWaiting: flowWaiting, Waiting: memoryWaiting, Timeout: timeout,
		}),
	}
}

// cpuSlots is half the cores, so that work without a slot goes on, but two at least: one flow has half of them.
func cpuSlots() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// queueOf returns the queue in which an operation holds a slot from when its body has been read to its answer, or nil.
func (a *Core) queueOf(p *Principal, need Access, method string) *quota.Queue {
	switch {
	case need.Slow:
		return a.Queues.Memory
	case need.Who == Anyone:
		return nil
	case method == http.MethodGet || p.Tenant == nil:
		return a.Queues.Database
	default:
		return nil
	}
}

// EnterQueue waits in a queue for a slot of a principal. Its error is a problem.
func (a *Core) EnterQueue(ctx context.Context, q *quota.Queue, p *Principal) (*quota.Slot, error) {
	slot, err := q.Enter(ctx, a.WorkQuota(ctx, p))
	switch {
	case err == nil:
		return slot, nil
	case errors.Is(err, quota.ErrFlowBusy):
		return nil, NoSlot(q.FlowSlots(),
			"too many costly requests that count together with this one are under way or waiting; this one was not carried out")
	default:
		return nil, NewProblem(http.StatusServiceUnavailable,
			"too many costly requests are under way or waiting; this one was not carried out")
	}
}

// EnterChanges waits for a slot for a costly change of a flag, unless the request has one already. Its error is a
// problem.
func (a *Core) EnterChanges(ctx context.Context) (leave func(), err error) {
	req := RequestOf(ctx)
	if req.changeSlot != nil {
		return func() {}, nil
	}
	if req.changeSlot, err = a.EnterQueue(ctx, a.Queues.CPU, PrincipalOf(ctx)); err != nil {
		return nil, err
	}
	return req.changeSlot.Leave, nil
}

// EnterRevert releases the slot that a revert has as a large change, as it is to wait for others first, and waits for
// one of memory. Its error is a problem.
func (a *Core) EnterRevert(ctx context.Context) (leave func(), err error) {
	req := RequestOf(ctx)
	if req.changeSlot != nil {
		req.changeSlot.Leave()
		req.changeSlot = nil
	}
	return a.EnterMemory(ctx)
}

// EnterMemory waits for a slot of memory, unless the request has one for its large body. Its error is a problem.
func (a *Core) EnterMemory(ctx context.Context) (leave func(), err error) {
	if RequestOf(ctx).largeBody {
		return func() {}, nil
	}
	slot, err := a.EnterQueue(ctx, a.Queues.Memory, PrincipalOf(ctx))
	if err != nil {
		return nil, err
	}
	return slot.Leave, nil
}

// EnterPast waits for a slot to add up what a flag was, in place of one for reads: that takes a processor rather than
// the database. Its error is a problem.
func (a *Core) EnterPast(ctx context.Context) (*quota.Slot, error) {
	if slot := RequestOf(ctx).readSlot; slot != nil {
		slot.Leave()
	}
	return a.EnterQueue(ctx, a.Queues.CPU, PrincipalOf(ctx))
}

// AcquireHistorySlot is EnterPast for what reads environments of then, too: it first waits as WaitUntilCurrent does,
// with the zero time for a version. Its error is a problem, or that of a query.
func (a *Core) AcquireHistorySlot(ctx context.Context, at time.Time) (*quota.Slot, error) {
	if err := a.Queries.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
		return nil, err
	}
	return a.EnterPast(ctx)
}

// NoSlot refuses what got no slot, because as much of the caller's is under way as may be at once.
func NoSlot(atOnce int, why string) *Problem {
	return TooManyRequests(quota.Spent(atOnce, time.Second), why)
}
