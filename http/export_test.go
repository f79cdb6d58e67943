package http

import (
	"context"
	"sync"

	"flagledger/events"
	"flagledger/http/quota"
)

// OccupyCPU takes all that a flow may have of the processors, the places of those that wait included, until free is
// called.
func (a *API) OccupyCPU(flow string) (free func()) { return occupy(a.queues.cpu, flow) }

// OccupyMemory is OccupyCPU for memory.
func (a *API) OccupyMemory(flow string) (free func()) { return occupy(a.queues.memory, flow) }

func occupy(q *quota.Queue, flow string) (free func()) {
	ctx, cancel := context.WithCancel(context.Background())
	full := make(chan struct{})
	once := sync.OnceFunc(func() { close(full) })
	var all sync.WaitGroup
	for range q.Limits().FlowSlots + q.Limits().FlowWaiting + 1 { // one more than allowed: it is refused at once
		all.Go(func() {
			slot, err := q.Enter(ctx, flow)
			if err != nil {
				once()
				return
			}
			<-ctx.Done()
			slot.Leave()
		})
	}
	<-full
	return func() {
		cancel()
		all.Wait()
	}
}

// MachineAnswerQuota returns the key of the quota of unread responses of a tenant's machines.
func (a *API) MachineAnswerQuota(tenantID string) string {
	return a.answerQuota(&request{credential: &credential{machine: &machine{tenantID: tenantID}}})
}

// StreamID returns the id of a position for a tenant's streams.
func (a *API) StreamID(tenantID string, p events.Position) string {
	ids, err := a.StreamIDs(tenantID)
	if err != nil {
		panic(err)
	}
	return ids.ID(p)
}

// StreamPosition returns the position of an id of a tenant's streams.
func (a *API) StreamPosition(tenantID, id string) (events.Position, bool) {
	ids, err := a.StreamIDs(tenantID)
	if err != nil {
		panic(err)
	}
	return ids.Position(id)
}
