package http

import (
	"context"
	"sync"

	"flagledger/events"
	"flagledger/http/quota"
)

// OccupyTokens takes all slots and waiting places of a flow in the queue for signing tokens, until free is called.
func (a *API) OccupyTokens(flow string) (free func()) { return occupy(a.queues.signing, flow) }

// OccupyChanges is OccupyTokens for expensive changes of flags.
func (a *API) OccupyChanges(flow string) (free func()) { return occupy(a.queues.changes, flow) }

// OccupyPast is OccupyTokens for the history of flags.
func (a *API) OccupyPast(flow string) (free func()) { return occupy(a.queues.past, flow) }

// OccupyPeople is OccupyTokens for changes without a tenant.
func (a *API) OccupyPeople(flow string) (free func()) { return occupy(a.queues.people, flow) }

func occupy(q *quota.Queue, flow string) (free func()) {
	ctx, cancel := context.WithCancel(context.Background())
	full := make(chan struct{})
	once := sync.OnceFunc(func() { close(full) })
	var all sync.WaitGroup
	for range q.FlowSlots() + signingWaiting + 1 { // one more than allowed: it is refused at once
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
	ids, err := a.streamIDsOf(tenantID)
	if err != nil {
		panic(err)
	}
	return ids.id(p)
}

// StreamPosition returns the position of an id of a tenant's streams.
func (a *API) StreamPosition(tenantID, id string) (events.Position, bool) {
	ids, err := a.streamIDsOf(tenantID)
	if err != nil {
		panic(err)
	}
	return ids.position(id)
}
