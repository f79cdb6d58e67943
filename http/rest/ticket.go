package rest

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"time"

	"flagledger/commands/keep/keys"
	"flagledger/commands/people"
	"flagledger/events"
)

// TicketParameter is the query parameter of a stream's URL that holds a ticket.
const TicketParameter = "ticket"

// ticket replaces a token for one stream. It is part of the URL, since browsers send no headers when they open a
// stream. It expires with the token, and losing access also invalidates it.
type ticket struct {
	TenantID    string `json:"tenant_id"`
	Environment string `json:"environment"`
	ClientID    string `json:"client_id,omitempty"` // of a machine
	KeyHash     []byte `json:"key_hash,omitempty"`  // of an evaluation key
	SessionID   string `json:"sid,omitempty"`       // of a person
	AuthTime    int64  `json:"auth_time,omitempty"` // of a person, in seconds since 1970

	EmailVerified bool `json:"email_verified,omitempty"` // the person has verified the address
}

func (a *Core) ticketKind() keys.Kind {
	return keys.Kind{Type: "stream+jwt", Issuer: a.PublicURL, Audience: a.PublicURL + StreamRoute}
}

// StreamURL is a cached URL that opens a principal's stream without headers. It is the same on every node for the life
// of the token.
type streamURL struct {
	tenantID, environment, base, text string
	until                             time.Time // a new one is issued then
}

// StreamURL returns the URL of a stream of changes for a principal.
func (a *Core) StreamURL(r *http.Request, p *Principal) (string, error) {
	made, base := p.stream.Load(), a.baseURL(r)
	if made != nil && a.Now().Before(made.until) && made.tenantID == p.Tenant.ID() &&
		made.environment == p.Environment.Name && made.base == base {
		return made.text, nil
	}
	t, subject := ticket{TenantID: p.Tenant.ID(), Environment: p.Environment.Name}, p.Claims.UserID
	if p.EvaluationKey() != nil {
		t.KeyHash, subject = p.Machine.keyHash[:], p.Machine.ClientID
	} else if p.Machine != nil {
		t.ClientID, subject = p.Machine.ClientID, p.Machine.ClientID
	} else {
		t.SessionID, t.AuthTime = p.Claims.SessionID, p.Claims.AuthTime.Unix()
		t.EmailVerified = p.Claims.EmailProved()
	}
	expires, renewed := a.ticketEnd(p)
	text, err := a.Keys.SignOwn(a.ticketKind(), subject, expires, t)
	if err != nil {
		return "", err
	}
	made = &streamURL{
		t.TenantID,
		t.Environment,
		base,
		base + StreamRoute + "?" + url.Values{TicketParameter: {text}}.Encode(),
		renewed,
	}
	p.stream.Store(made)
	return made.text, nil
}

// serverTicket is the validity of a ticket of a server key, which is secret and may not expire itself. A new ticket is
// issued halfway.
const serverTicket = 24 * time.Hour

// ticketEnd returns when a ticket expires, and when a new one is issued: equally on all nodes.
func (a *Core) ticketEnd(p *Principal) (expires, renewed time.Time) {
	if p.EvaluationKey() == nil || p.HasBrowserKey() {
		return p.Expires, p.Expires
	}
	began := a.Now().UTC().Truncate(serverTicket / 2)
	if expires = began.Add(serverTicket); p.Expires.Before(expires) {
		expires = p.Expires
	}
	return expires, began.Add(serverTicket / 2)
}

// ticketOf returns the credential of a stream request's ticket, or nil without one. It sets the request's tenant and
// environment headers from the ticket.
func (a *Core) ticketOf(r *http.Request) (*Credential, error) {
	if routedPath(r) != StreamRoute || r.URL.RawQuery == "" {
		return nil, nil
	}
	text := r.URL.Query().Get(TicketParameter)
	if text == "" {
		return nil, nil
	}
	if HasCredentials(r) {
		return nil, NewProblem(http.StatusUnauthorized, "the request has a ticket and another credential: send one of them")
	}
	c, t, err := a.redeem(r.Context(), text)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Tenant-ID", t.TenantID)
	r.Header.Set("X-Environment", t.Environment)
	if err := a.checkRevoked(c); err != nil {
		return nil, err
	}
	return c, nil
}

func (a *Core) redeem(ctx context.Context, text string) (*Credential, ticket, error) {
	var t ticket
	claims, err := a.Keys.VerifyOwn(ctx, a.ticketKind(), text, &t)
	if err != nil {
		return nil, t, err
	}
	c := &Credential{Expires: claims.Expiry.Time().UTC()}
	if len(t.KeyHash) == sha256.Size {
		c, err := a.credentialOfKey([sha256.Size]byte(t.KeyHash))
		return c, t, err
	}
	if t.ClientID != "" {
		c.Machine = &Machine{ClientID: t.ClientID, TenantID: t.TenantID, scopes: []events.Scope{StreamAccess.Scope}}
		return c, t, nil
	}
	c.Claims = people.Claims{
		UserID:        claims.Subject,
		SessionID:     t.SessionID,
		AuthTime:      time.Unix(t.AuthTime, 0).UTC(),
		ExpiresAt:     c.Expires,
		EmailVerified: t.EmailVerified,
	}
	return c, t, nil
}

// StreamAccess is the access of those who open a stream of changes.
var StreamAccess = Access{
	Who:             Viewer,
	Scope:           events.FlagsEvaluate,
	environment:     true,
	allEnvironments: true,
	Unverified:      true,
	BrowserKeys:     true,
}
