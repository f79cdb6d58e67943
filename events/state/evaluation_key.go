package state

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"time"

	"flagledger/events"
)

// EvaluationKey is the state of an evaluation key in its tenant's stream. The fields of its first fact are the current
// ones.
type EvaluationKey struct {
	events.EvaluationKeyAdded
	CreatedAt time.Time     `json:"createdAt,omitzero"`
	CreatedBy string        `json:"createdBy,omitempty"` // a person's id
	Previous  []PreviousKey `json:"previous,omitempty"`  // the last MaxPreviousSecrets, oldest first
}

// PreviousKey is what a rotation of an evaluation key replaced.
type PreviousKey struct {
	events.KeyMaterial
	Until time.Time `json:"until"` // it works until then
}

// Signed reports whether the key requires signed contexts.
func (k *EvaluationKey) Signed() bool { return k.SigningID != "" }

// ValidUntil returns when the key stops working for a caller who sent the key with this hash: zero for never.
func (k *EvaluationKey) ValidUntil(hash [sha256.Size]byte) time.Time {
	if hashOf(k.KeyMaterial) == hash {
		return k.ExpiresAt
	}
	var until time.Time
	for _, p := range k.Previous {
		if hashOf(p.KeyMaterial) == hash {
			until = p.Until
		}
	}
	if !k.ExpiresAt.IsZero() && k.ExpiresAt.Before(until) {
		return k.ExpiresAt
	}
	return until
}

// Hashes lists the SHA-256 of the key, and of the ones that rotations have replaced.
func (k *EvaluationKey) Hashes() (list [][sha256.Size]byte) {
	for _, p := range k.Previous {
		list = append(list, hashOf(p.KeyMaterial))
	}
	return append(list, hashOf(k.KeyMaterial))
}

// SigningIDs lists the ids of the secrets with which contexts may be signed at a time, the current one first.
func (k *EvaluationKey) SigningIDs(now time.Time) []string {
	ids := []string{k.SigningID}
	for _, p := range k.Previous {
		if now.Before(p.Until) {
			ids = append(ids, p.SigningID)
		}
	}
	return ids
}

// hashOf returns the SHA-256 of a key as callers send it.
func hashOf(m events.KeyMaterial) (hash [sha256.Size]byte) {
	if m.Key != "" {
		return sha256.Sum256([]byte(m.Key))
	}
	copy(hash[:], m.Hash)
	return hash
}

// AllowsOrigin reports whether a web page with this origin, as browsers send it, may use the key.
func (k *EvaluationKey) AllowsOrigin(origin string) bool {
	return len(k.Origins) == 0 || slices.ContainsFunc(k.Origins, func(allowed string) bool {
		return allowed == origin || matchesSubdomain(allowed, origin) || matchesPort(allowed, origin)
	})
}

// matchesSubdomain matches https://*.example.com, whose * stands for one or more labels.
func matchesSubdomain(allowed, origin string) bool {
	domain, wildcard := strings.CutPrefix(allowed, "https://*")
	labels, https := strings.CutPrefix(origin, "https://")
	labels, under := strings.CutSuffix(labels, domain)
	return wildcard && https && under && labels != "" &&
		!strings.ContainsFunc(labels, func(c rune) bool {
			return c != '.' && c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
		})
}

// matchesPort matches http://localhost:*, which is any port.
func matchesPort(allowed, origin string) bool {
	host, wildcard := strings.CutSuffix(allowed, ":*")
	port, same := strings.CutPrefix(origin, host)
	return wildcard && same && (port == "" || port[0] == ':' && strings.Trim(port[1:], "0123456789") == "")
}

// Apply changes the key by one of its facts other than its removal. It leaves lists that are shared with a clone as
// they are.
func (k *EvaluationKey) Apply(r events.Recorded) {
	fact, _ := r.Fact.(events.EvaluationKeyFact)
	switch fact := fact.(type) {
	case events.EvaluationKeyAdded:
		*k = EvaluationKey{EvaluationKeyAdded: fact, CreatedAt: r.At}
		if r.Actor.Kind == events.UserActor {
			k.CreatedBy = r.Actor.ID
		}
	case events.EvaluationKeyChanged:
		fact.Name.Apply(&k.Name)
		fact.Origins.Apply(&k.Origins)
		if fact.ExpiresAt != nil {
			k.ExpiresAt = time.Time{}
			if to := fact.ExpiresAt.To; to != nil {
				k.ExpiresAt = *to
			}
		}
	case events.EvaluationKeyRotated:
		k.rotate(fact, r.Time)
	case events.EvaluationKeyRemoved:
	}
}

// rotate replaces what callers are recognized by. A rotation that ends the previous one at once ends all earlier ones.
func (k *EvaluationKey) rotate(fact events.EvaluationKeyRotated, now time.Time) {
	previous := append(slices.Clone(k.Previous), PreviousKey{KeyMaterial: k.KeyMaterial, Until: fact.PreviousUntil})
	for i := range previous {
		if fact.PreviousUntil.Before(previous[i].Until) {
			previous[i].Until = fact.PreviousUntil
		}
	}
	previous = slices.DeleteFunc(previous, func(p PreviousKey) bool { return !now.Before(p.Until) })
	k.Previous = previous[max(0, len(previous)-MaxPreviousSecrets):]
	k.KeyMaterial = fact.KeyMaterial
}

func (t *Tenant) applyEvaluationKey(r events.Recorded) {
	fact, _ := r.Fact.(events.EvaluationKeyFact)
	id := EvaluationKeyID(fact)
	key := t.EvaluationKeys[id]
	switch fact.(type) {
	case events.EvaluationKeyRemoved:
		delete(t.EvaluationKeys, id)
		return
	case events.EvaluationKeyAdded:
		if t.EvaluationKeys == nil {
			t.EvaluationKeys = map[string]EvaluationKey{}
		}
	case events.EvaluationKeyChanged, events.EvaluationKeyRotated:
		if key.KeyID == "" {
			return
		}
	}
	key.Apply(r)
	t.EvaluationKeys[id] = key
}

// EvaluationKeyID returns the id of the key that a fact is about.
func EvaluationKeyID(fact events.EvaluationKeyFact) string {
	switch fact := fact.(type) {
	case events.EvaluationKeyAdded:
		return fact.KeyID
	case events.EvaluationKeyChanged:
		return fact.KeyID
	case events.EvaluationKeyRotated:
		return fact.KeyID
	case events.EvaluationKeyRemoved:
		return fact.KeyID
	}
	return ""
}

// removeEvaluationKeys removes the keys of a deleted environment.
func (t *Tenant) removeEvaluationKeys(environmentID string) {
	maps.DeleteFunc(t.EvaluationKeys, func(_ string, k EvaluationKey) bool { return k.Environment.ID == environmentID })
}
