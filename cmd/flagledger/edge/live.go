package edge

import (
	"context"
	"crypto/sha256"
	"math"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot"
)

// live presents the replicas as one snapshot.
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

// snapshotOf returns the replica of a tenant, or the empty snapshot.
func (l *live) snapshotOf(t *snapshot.Tenant) *snapshot.Snapshot {
	for _, r := range l.replicas {
		if own, ok := r.OwnTenant(); ok && own == t {
			return r.Snapshot
		}
	}
	return l.Snapshot
}

func (l *live) Listen(t *snapshot.Tenant, environmentID string, most int) *snapshot.Listener {
	return l.snapshotOf(t).Listen(t, environmentID, most)
}

func (l *live) Await(ctx context.Context, t *snapshot.Tenant, position events.Position) {
	l.snapshotOf(t).Await(ctx, t, position)
}

func (l *live) Feed(
	t *snapshot.Tenant, environment state.Environment, secrets func(string) ([]string, error),
) *snapshot.Feed {
	return l.snapshotOf(t).Feed(t, environment, secrets)
}

// Position returns the highest position: an edge already has every change that it reports, so nothing waits.
func (l *live) Position() events.Position {
	return events.Position{Commit: math.MaxUint64, Prepare: math.MaxUint64}
}

// LogName returns the name of the service's log.
func (l *live) LogName() string { return l.replicas[0].LogName() }

// signingSecrets returns the secrets of signed contexts with an id: none if the feed of the key does not have them.
func (l *live) signingSecrets(id string) ([]string, error) {
	for _, r := range l.replicas {
		if secrets, ok := r.SigningSecrets(id); ok {
			return secrets, nil
		}
	}
	return nil, nil
}
