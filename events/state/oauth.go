package state

import (
	"slices"
	"time"

	"flagledger/events"
)

// MaxPreviousSecrets is how many earlier secrets of an OAuth client may be valid at once.
const MaxPreviousSecrets = 10

// OAuthClient is the state of an OAuth client in its tenant's stream.
type OAuthClient struct {
	ID        string
	Name      string
	Scopes    []events.Scope
	CreatedAt time.Time
	Previous  []time.Time // until when each of the last MaxPreviousSecrets earlier secrets is valid
}

func (t *Tenant) applyClient(r events.Recorded) {
	fact, _ := r.Fact.(events.OAuthFact)
	switch fact := fact.(type) {
	case events.OAuthClientCreated:
		if t.Clients == nil {
			t.Clients = map[string]OAuthClient{}
		}
		t.Clients[fact.ClientID] = OAuthClient{ID: fact.ClientID, Name: fact.Name, Scopes: fact.Scopes, CreatedAt: r.At}
	case events.OAuthSecretRotated:
		c := t.Clients[fact.ClientID]
		last := c.Previous[max(0, len(c.Previous)+1-MaxPreviousSecrets):]
		c.Previous = slices.Concat(last, []time.Time{fact.PreviousUntil}) // a copy: the list is shared
		t.Clients[fact.ClientID] = c
	case events.OAuthClientDeleted:
		delete(t.Clients, fact.ClientID)
	}
}
