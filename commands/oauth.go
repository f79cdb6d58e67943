package commands

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

const (
	maxClients = 100
	// maxNamed limits the unknown scopes that an error names.
	maxNamed = 20
	// SecretOverlap is how long the previous secret stays valid after a rotation.
	SecretOverlap = 24 * time.Hour
)

var scopes = []events.Scope{
	events.FlagsRead,
	events.FlagsWrite,
	events.FlagsEvaluate,
	events.FlagsSync,
	events.ProjectsRead,
	events.ProjectsWrite,
}

// NewSecret returns a client's secret, 256 random bits as text, and its hash for the fact.
func NewSecret() (secret string, hash []byte) {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // never fails
	secret = base64.RawURLEncoding.EncodeToString(bits)
	sum := sha256.Sum256([]byte(secret))
	return secret, sum[:]
}

// CreateClient adds an OAuth client to a tenant.
type CreateClient struct {
	TenantRef
	ID         string // new
	Name       string
	Scopes     []string // repeated ones count once
	SecretHash []byte
}

func (c CreateClient) Decide(t state.Tenant) ([]events.Fact, error) {
	wrong := FieldErrors{}
	CheckText(wrong, "name", c.Name, 1, maxName)
	granted := checkScopes(wrong, c.Scopes)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if err := c.admit(t); err != nil {
		return nil, err
	}
	if len(t.Clients) >= maxClients {
		return nil, Refuse(Conflict, "the tenant has %d OAuth clients, which is the limit", maxClients)
	}
	return []events.Fact{
		events.OAuthClientCreated{ClientID: c.ID, Name: c.Name, Scopes: granted, SecretHash: c.SecretHash},
	}, nil
}

// checkScopes removes repeated scopes, preserving the order, and reports unknown ones.
func checkScopes(wrong FieldErrors, names []string) (set []events.Scope) {
	wrong.Check(len(names) > 0, "scopes", "is required and must not be empty")
	for i, name := range names {
		scope := events.Scope(name)
		if !slices.Contains(scopes, scope) {
			wrong.Check(false, "scopes["+strconv.Itoa(i)+"]",
				"must be flags:read, flags:write, flags:evaluate, flags:sync, projects:read or projects:write")
		} else if !slices.Contains(set, scope) {
			set = append(set, scope)
		}
		if len(wrong) >= maxNamed {
			break
		}
	}
	return set
}

// ClientRef identifies an OAuth client of a tenant.
type ClientRef struct {
	TenantRef
	ID string
}

// find returns the client, or NotFound if the tenant has no such client.
func (r ClientRef) find(t state.Tenant) (state.OAuthClient, error) {
	if err := r.admit(t); err != nil {
		return state.OAuthClient{}, err
	}
	client, ok := t.Clients[r.ID]
	if !ok {
		return client, Refuse(NotFound, "no OAuth client has the id %q", r.ID)
	}
	return client, nil
}

// RotateSecret gives an OAuth client a new secret. The previous one stays valid for SecretOverlap.
type RotateSecret struct {
	ClientRef
	SecretHash []byte
	Now        time.Time
}

func (c RotateSecret) Decide(t state.Tenant) ([]events.Fact, error) {
	client, err := c.find(t)
	if err != nil {
		return nil, err
	}
	good := 0
	for _, until := range client.Previous {
		if until.After(c.Now) {
			good++
		}
	}
	if good >= state.MaxPreviousSecrets {
		return nil, Refuse(Conflict,
			"%d earlier secrets of the client are still valid, which is the limit; each ends %v after it was rotated", good,
			SecretOverlap)
	}
	until := c.Now.UTC().Truncate(time.Millisecond).Add(SecretOverlap)
	return []events.Fact{events.OAuthSecretRotated{ClientID: c.ID, SecretHash: c.SecretHash, PreviousUntil: until}}, nil
}

// DeleteClient deletes an OAuth client. Its secrets and tokens are refused from now on.
type DeleteClient struct{ ClientRef }

func (c DeleteClient) Decide(t state.Tenant) ([]events.Fact, error) {
	if _, err := c.find(t); err != nil {
		return nil, err
	}
	return []events.Fact{events.OAuthClientDeleted{ClientID: c.ID}}, nil
}
