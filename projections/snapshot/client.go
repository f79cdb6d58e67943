package snapshot

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"time"

	"flagledger/events"
)

// Client is an OAuth client of a tenant.
type Client struct {
	ID       string
	TenantID string
	Scopes   []events.Scope
	Secrets  []secret // the current one first
}

type secret struct {
	Hash  []byte
	Until time.Time // zero for the current one
}

// HasSecret reports whether a secret with this hash is valid, in constant time.
func (c *Client) HasSecret(hash [sha256.Size]byte, now time.Time) bool {
	found := 0
	for _, s := range c.Secrets {
		good := s.Until.IsZero() || now.Before(s.Until)
		if same := subtle.ConstantTimeCompare(s.Hash, hash[:]); good {
			found |= same
		}
	}
	return found == 1
}

// Client finds an OAuth client. A client of a deleted tenant is not found.
func (s *Snapshot) Client(id string) (*Client, bool) {
	c, ok := s.clients.Load(id)
	if !ok {
		return nil, false
	}
	_, ok = s.Tenant(c.TenantID)
	return c, ok
}

func (s *Snapshot) applyClient(t *Tenant, e events.Recorded) {
	fact, _ := e.Fact.(events.OAuthFact)
	switch fact := fact.(type) {
	case events.OAuthClientCreated:
		s.clients.Store(fact.ClientID,
			&Client{ID: fact.ClientID, TenantID: t.id, Scopes: fact.Scopes, Secrets: []secret{{Hash: fact.SecretHash}}})
		t.clients = append(t.clients, fact.ClientID)
	case events.OAuthSecretRotated:
		before, ok := s.clients.Load(fact.ClientID)
		if !ok {
			return
		}
		c := *before
		c.Secrets = slices.Insert(slices.Clone(before.Secrets), 0, secret{Hash: fact.SecretHash})
		c.Secrets[1].Until = fact.PreviousUntil
		c.Secrets = slices.DeleteFunc(c.Secrets, func(s secret) bool { return !s.Until.IsZero() && s.Until.Before(e.Time) })
		s.clients.Store(fact.ClientID, &c)
	case events.OAuthClientDeleted:
		s.clients.Delete(fact.ClientID)
		t.clients = slices.DeleteFunc(t.clients, func(id string) bool { return id == fact.ClientID })
	}
}

// removeClients removes the clients of a deleted tenant.
func (s *Snapshot) removeClients(t *Tenant) {
	for _, id := range t.clients {
		s.clients.Delete(id)
	}
	t.clients = nil
}
