package events

import "time"

// Scope is what an OAuth client may do in its tenant.
type Scope string

// The scopes. No scope includes another.
const (
	FlagsRead     Scope = "flags:read"
	FlagsWrite    Scope = "flags:write"
	FlagsEvaluate Scope = "flags:evaluate"
	FlagsSync     Scope = "flags:sync" // reads rules and salts, to evaluate elsewhere
	ProjectsRead  Scope = "projects:read"
	ProjectsWrite Scope = "projects:write"
)

// OAuthFact is a fact of an OAuth client, in its tenant's stream.
//
//sumtype:decl
type OAuthFact interface {
	TenantFact
	oauthFact()
}

// OAuthClientCreated adds an OAuth client to a tenant: a machine that calls on the tenant's behalf.
type OAuthClientCreated struct {
	ClientID   string  `json:"clientId"`
	Name       string  `json:"name"`
	Scopes     []Scope `json:"scopes"`
	SecretHash []byte  `json:"secretHash"` // SHA-256; the secret itself is not stored
}

// OAuthSecretRotated gives an OAuth client a new secret. The previous one works until PreviousUntil.
type OAuthSecretRotated struct {
	ClientID      string    `json:"clientId"`
	SecretHash    []byte    `json:"secretHash"`
	PreviousUntil time.Time `json:"previousUntil"`
}

// OAuthClientDeleted deletes an OAuth client. Its secrets and tokens are refused from now on.
type OAuthClientDeleted struct {
	ClientID string `json:"clientId"`
}

func (OAuthClientCreated) StoredName() string { return "tenant.oauth_client_created" }
func (OAuthSecretRotated) StoredName() string { return "tenant.oauth_secret_rotated" }
func (OAuthClientDeleted) StoredName() string { return "tenant.oauth_client_deleted" }

func (OAuthClientCreated) tenantFact() {}
func (OAuthSecretRotated) tenantFact() {}
func (OAuthClientDeleted) tenantFact() {}

func (OAuthClientCreated) oauthFact() {}
func (OAuthSecretRotated) oauthFact() {}
func (OAuthClientDeleted) oauthFact() {}
