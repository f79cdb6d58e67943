package http

import (
	"context"
	"sync"

	"flagledger/events"
	"flagledger/http/quota"
)

// OccupyTokens takes all that a flow may have where tokens are signed, the places of those that wait included, until
// free is called.
func (a *API) OccupyTokens(flow string) (free func()) { return occupy(a.queues.signing, flow) }

// OccupyChanges is OccupyTokens for costly changes of flags.
func (a *API) OccupyChanges(flow string) (free func()) { return occupy(a.queues.changes, flow) }

// OccupyPast is OccupyTokens for adding up what flags were.
func (a *API) OccupyPast(flow string) (free func()) { return occupy(a.queues.past, flow) }

// OccupyPeople is OccupyTokens for changes about no tenant.
func (a *API) OccupyPeople(flow string) (free func()) { return occupy(a.queues.people, flow) }

func occupy(q *quota.Queue, flow string) (free func()) {
	ctx, cancel := context.WithCancel(context.Background())
	full := make(chan struct{})
	once := sync.OnceFunc(func() { close(full) })
	var all sync.WaitGroup
	for range q.FlowSlots() + signingWaiting + 1 { // one more than may be: it is refused at once
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

// MachineAnswerQuota is whose quota of unread answers the machines of a tenant use.
func (a *API) MachineAnswerQuota(tenantID string) string {
	return a.answerQuota(&request{credential: &credential{machine: &machine{tenantID: tenantID}}})
}

// StreamID is the id of a position for a tenant's streams.
func (a *API) StreamID(tenantID string, p events.Position) string {
	ids, err := a.streamIDsOf(tenantID)
	if err != nil {
		panic(err)
	}
	return ids.id(p)
}

// StreamPosition is the position that an id of a tenant's streams stands for.
func (a *API) StreamPosition(tenantID, id string) (events.Position, bool) {
	ids, err := a.streamIDsOf(tenantID)
	if err != nil {
		panic(err)
	}
	return ids.position(id)
}
