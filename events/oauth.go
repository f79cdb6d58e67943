package events

import "time"

// Scope is what an OAuth client may do in its tenant.
type Scope string

// The scopes. None of them includes another.
const (
	FlagsRead     Scope = "flags:read"
	FlagsWrite    Scope = "flags:write"
	FlagsEvaluate Scope = "flags:evaluate"
	ProjectsRead  Scope = "projects:read"
	ProjectsWrite Scope = "projects:write"
)

// OAuthClientCreated gives a tenant an OAuth client, a machine that calls on the tenant's behalf.
type OAuthClientCreated struct {
	ClientID   string  `json:"clientId"`
	Name       string  `json:"name"`
	Scopes     []Scope `json:"scopes"`
	SecretHash []byte  `json:"secretHash"` // SHA-256; the secret itself is kept nowhere
}

// OAuthSecretRotated gives an OAuth client a new secret. The one that it had until then is good up to PreviousUntil.
type OAuthSecretRotated struct {
	ClientID      string    `json:"clientId"`
	SecretHash    []byte    `json:"secretHash"`
	PreviousUntil time.Time `json:"previousUntil"`
}

// OAuthClientDeleted ends an OAuth client. Its secrets and its tokens are refused from now on.
type OAuthClientDeleted struct {
	ClientID string `json:"clientId"`
}

func (OAuthClientCreated) StoredName() string { return "tenant.oauth_client_created" }
func (OAuthSecretRotated) StoredName() string { return "tenant.oauth_secret_rotated" }
func (OAuthClientDeleted) StoredName() string { return "tenant.oauth_client_deleted" }

func (OAuthClientCreated) tenantFact() {}
func (OAuthSecretRotated) tenantFact() {}
func (OAuthClientDeleted) tenantFact() {}
