package http

import "flagledger/events"

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
