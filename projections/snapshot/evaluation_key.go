package snapshot

import (
	"crypto/sha256"
	"maps"
	"slices"

	"flagledger/events"
	"flagledger/events/state"
)

// EvaluationKey is an evaluation key of a tenant. A change of the key replaces it.
type EvaluationKey struct {
	state.EvaluationKey
	TenantID string `json:"-"`
	// SigningSecrets has the secrets of signed contexts by signing id, in a replica of a feed that has them.
	SigningSecrets map[string][]string `json:"signingSecrets,omitempty"`

	tenant *Tenant
}

// Tenant returns the tenant of the key, and false once that is deleted.
func (k *EvaluationKey) Tenant() (*Tenant, bool) { return k.tenant, k.tenant.state.Load().Exists }

// EvaluationKey finds a key by the SHA-256 of what a caller sent. The key may have expired: see ValidUntil. Keys of
// deleted tenants and environments are not found.
func (s *Snapshot) EvaluationKey(hash [sha256.Size]byte) (*EvaluationKey, bool) {
	return s.evaluationKeys.Load(hash)
}

// applyEvaluationKey changes a key in the next state of its tenant.
func (s *Snapshot) applyEvaluationKey(t *Tenant, next *tenantState, e events.Recorded) {
	fact, _ := e.Fact.(events.EvaluationKeyFact)
	id := state.EvaluationKeyID(fact)
	key, found := next.EvaluationKeys[id]
	if _, added := fact.(events.EvaluationKeyAdded); !added && !found {
		return
	}
	next.EvaluationKeys = maps.Clone(next.EvaluationKeys)
	if _, removed := fact.(events.EvaluationKeyRemoved); removed {
		delete(next.EvaluationKeys, id)
		s.forgetEvaluationKey(key)
		return
	}
	if next.EvaluationKeys == nil {
		next.EvaluationKeys = map[string]state.EvaluationKey{}
	}
	before := key.Hashes()
	key.Apply(e)
	next.EvaluationKeys[id] = key
	s.addEvaluationKey(t, key) // before others are deleted: no call finds the key missing
	for _, hash := range before {
		if !slices.Contains(key.Hashes(), hash) {
			s.evaluationKeys.Delete(hash)
		}
	}
}

// removeEvaluationKeys removes a tenant's keys of a deleted environment, or all if its id is empty.
func (s *Snapshot) removeEvaluationKeys(next *tenantState, environmentID string) {
	next.EvaluationKeys = maps.Clone(next.EvaluationKeys)
	maps.DeleteFunc(next.EvaluationKeys, func(_ string, key state.EvaluationKey) bool {
		gone := environmentID == "" || key.Environment.ID == environmentID
		if gone {
			s.forgetEvaluationKey(key)
		}
		return gone
	})
}

func (s *Snapshot) addEvaluationKey(t *Tenant, key state.EvaluationKey) {
	added := &EvaluationKey{EvaluationKey: key, TenantID: t.id, tenant: t}
	for _, hash := range key.Hashes() {
		s.evaluationKeys.Store(hash, added)
	}
}

func (s *Snapshot) forgetEvaluationKey(key state.EvaluationKey) {
	for _, hash := range key.Hashes() {
		s.evaluationKeys.Delete(hash)
	}
}
