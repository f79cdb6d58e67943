package rest

import (
	"crypto/sha256"
	"net/http"

	"flagledger/events"
	"flagledger/projections/snapshot"
)

// The routes of gRPC, which are no operations of the OpenAPI document.
const (
	SyncRoute       = "/flagd.sync.v1.FlagSyncService/{method}"
	GRPCHealthRoute = "/grpc.health.v1.Health/{method}"
)

// SyncFlags is the access of those who read the flags of an environment with rules and salts, to evaluate them.
var SyncFlags = Access{Who: Viewer, Scope: events.FlagsSync, environment: true}

// Synced is the caller of a stream of flags, and how to admit it again.
type Synced struct {
	*Principal
	core   *Core
	secret *[sha256.Size]byte // of HTTP Basic; nil for a token or a key
}

// AdmitSync admits a machine or a server key to an environment; an empty name means the key's, or else production. It
// also takes the id and the secret of an OAuth client as HTTP Basic, for callers that cannot fetch tokens. Its error is
// a problem.
func (a *Core) AdmitSync(r *http.Request, environment string) (*Synced, error) {
	req := RequestOf(r.Context())
	s := &Synced{core: a, Principal: &Principal{Credential: req.credential}}
	refusal := req.tokenRefusal
	if id, secret, ok := r.BasicAuth(); ok && credentialCount(r) == 1 {
		client, err := a.clientOf(req, id, secret)
		if err != nil {
			return nil, err
		}
		s.secret, refusal = new(sha256.Sum256([]byte(secret))), nil
		s.Credential = &Credential{
			Machine: &Machine{ClientID: client.ID, TenantID: client.TenantID, scopes: client.Scopes}, Expires: never,
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	if s.Machine == nil {
		return nil, NewProblem(http.StatusForbidden, "people cannot sync flags: send a server's evaluation key, or the "+
			"token of an OAuth client with the scope "+string(events.FlagsSync))
	}
	if err := a.Authorize(s.Principal, SyncFlags, r.Header.Get(tenantHeader)); err != nil {
		return nil, err
	}
	if sent := r.Header.Get(EnvironmentHeader); sent != "" && s.EvaluationKey() != nil {
		if err := s.SelectEnvironment(sent); err != nil {
			return nil, err
		}
	}
	if err := s.SelectEnvironment(environment); err != nil {
		return nil, err
	}
	return s, s.Refused()
}

// clientOf returns the OAuth client of an id and a secret. The right secret always passes: 256 bits cannot be guessed,
// and an attacker must not lock a client out.
func (a *Core) clientOf(req *request, id, secret string) (*snapshot.Client, error) {
	id = events.CanonicalID(id)
	client, known := a.Live.Client(id)
	if known && client.HasSecret(sha256.Sum256([]byte(secret)), a.Now()) {
		return client, nil
	}
	return nil, a.LimitAttempts(req, "client "+id, func() error {
		return NewProblem(http.StatusUnauthorized, "the client's id or secret is wrong")
	})
}

// Refused returns the problem with which the caller would be refused now, nil if it would be admitted again.
func (s *Synced) Refused() error {
	a := s.core
	if !a.Now().Before(s.Expires) {
		return NewProblem(http.StatusUnauthorized, "the token or the key has expired")
	}
	if err := a.checkRevoked(s.Credential); err != nil {
		return err
	}
	if s.secret != nil {
		client, known := a.Live.Client(s.ClientID())
		if !known || !client.HasSecret(*s.secret, a.Now()) {
			return NewProblem(http.StatusUnauthorized, "the client's secret is no longer valid")
		}
	}
	now := &Principal{Credential: s.Credential}
	if err := a.Authorize(now, SyncFlags, s.Tenant.ID()); err != nil {
		return err
	}
	if err := now.SelectEnvironment(s.Environment.Name); err != nil {
		return err
	}
	if now.Environment.ID != s.Environment.ID {
		return NewProblem(http.StatusNotFound, "the environment has been deleted")
	}
	return nil
}
