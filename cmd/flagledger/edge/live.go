package edge

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot"
)

// live is what an edge knows. It is the snapshot of a service that has nothing but the environments of the replicas.
type live struct {
	*snapshot.Snapshot // empty: an edge knows no people
	replicas           []*snapshot.Replica
	ready              <-chan struct{}
}

func (l *live) Ready() <-chan struct{} { return l.ready }

func (l *live) EvaluationKey(hash [sha256.Size]byte) (*snapshot.EvaluationKey, bool) {
	for _, r := range l.replicas {
		if key, ok := r.EvaluationKey(hash); ok {
			return key, true
		}
	}
	return nil, false
}

// Tenant finds a tenant with one of its environments.
func (l *live) Tenant(id string) (*snapshot.Tenant, bool) {
	for _, r := range l.replicas {
		if t, ok := r.Tenant(id); ok {
			return t, true
		}
	}
	return nil, false
}

// of finds the replica that a tenant is of.
func (l *live) of(t *snapshot.Tenant) *snapshot.Snapshot {
	for _, r := range l.replicas {
		if own, ok := r.OwnTenant(); ok && own == t {
			return r.Snapshot
		}
	}
	return l.Snapshot
}

func (l *live) Listen(t *snapshot.Tenant, environmentID string, most int) *snapshot.Listener {
	return l.of(t).Listen(t, environmentID, most)
}

func (l *live) Await(ctx context.Context, t *snapshot.Tenant, position events.Position) {
	l.of(t).Await(ctx, t, position)
}

func (l *live) Feed(
	t *snapshot.Tenant, environment state.Environment, secrets func(string) ([]string, error),
) *snapshot.Feed {
	return l.of(t).Feed(t, environment, secrets)
}

// Position is the end of time: an edge has every change that it has told of.
func (l *live) Position() events.Position {
	return events.Position{Commit: math.MaxUint64, Prepare: math.MaxUint64}
}

// LogName returns the name of the service's log.
func (l *live) LogName() string { return l.replicas[0].LogName() }

var errNoSecret = errors.New("the feed has no secret of signed contexts: its key was created without edge")

// signingSecrets returns the secrets of signed contexts with an id.
func (l *live) signingSecrets(id string) ([]string, error) {
	for _, r := range l.replicas {
		if secrets, ok := r.SigningSecrets(id); ok {
			return secrets, nil
		}
	}
	return nil, errNoSecret
}
