package events

import "time"

// KeyKind says where an evaluation key is used.
type KeyKind string

// The kinds of evaluation keys.
const (
	BrowserKey KeyKind = "browser" // public: web pages and apps contain it
	ServerKey  KeyKind = "server"  // secret
)

// EvaluationKeyFact is a fact of an evaluation key, in its tenant's stream.
//
//sumtype:decl
type EvaluationKeyFact interface {
	TenantFact
	evaluationKeyFact()
}

// EvaluationKeyAdded adds a key with which applications evaluate a tenant's flags in one environment.
type EvaluationKeyAdded struct {
	KeyID       string         `json:"keyId"`
	Name        string         `json:"name"`
	Kind        KeyKind        `json:"kind"`
	Environment EnvironmentRef `json:"environment"`
	Origins     []string       `json:"origins,omitempty"` // web pages that may use a browser key; none for any
	Edge        bool           `json:"edge,omitempty"`
	ExpiresAt   time.Time      `json:"expiresAt,omitzero"` // zero for never
	KeyMaterial
}

// KeyMaterial is what callers of an evaluation key are recognized by. Secrets are not in it.
type KeyMaterial struct {
	Key       string `json:"key,omitempty"`       // a browser key, which is public
	Hash      []byte `json:"hash,omitempty"`      // the SHA-256 of a server key
	SigningID string `json:"signingId,omitempty"` // the secret that signs contexts is derived from it
}

// EvaluationKeyChanged changes fields of an evaluation key.
type EvaluationKeyChanged struct {
	KeyID       string              `json:"keyId"`
	Environment EnvironmentRef      `json:"environment,omitzero"` // of the key; early facts lack it
	Name        *Change[string]     `json:"name,omitempty"`
	Origins     *Change[[]string]   `json:"origins,omitempty"`
	ExpiresAt   *Change[*time.Time] `json:"expiresAt,omitempty"` // null for never
}

// EvaluationKeyRotated replaces a key, or the signing secret of a key with signed contexts. What it replaces works
// until PreviousUntil.
type EvaluationKeyRotated struct {
	KeyID       string         `json:"keyId"`
	Environment EnvironmentRef `json:"environment,omitzero"` // of the key; early facts lack it
	KeyMaterial
	PreviousUntil time.Time `json:"previousUntil"`
}

// EvaluationKeyRemoved deletes an evaluation key. It is refused from now on.
type EvaluationKeyRemoved struct {
	KeyID       string         `json:"keyId"`
	Environment EnvironmentRef `json:"environment,omitzero"` // of the key; early facts lack it
}

func (EvaluationKeyAdded) StoredName() string   { return "tenant.evaluation_key_added" }
func (EvaluationKeyChanged) StoredName() string { return "tenant.evaluation_key_changed" }
func (EvaluationKeyRotated) StoredName() string { return "tenant.evaluation_key_rotated" }
func (EvaluationKeyRemoved) StoredName() string { return "tenant.evaluation_key_removed" }

func (EvaluationKeyAdded) tenantFact()   {}
func (EvaluationKeyChanged) tenantFact() {}
func (EvaluationKeyRotated) tenantFact() {}
func (EvaluationKeyRemoved) tenantFact() {}

func (EvaluationKeyAdded) evaluationKeyFact()   {}
func (EvaluationKeyChanged) evaluationKeyFact() {}
func (EvaluationKeyRotated) evaluationKeyFact() {}
func (EvaluationKeyRemoved) evaluationKeyFact() {}
