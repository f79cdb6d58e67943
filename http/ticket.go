package http

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"flagledger/commands"
	"flagledger/commands/keep/keys"
	"flagledger/events"
)

// ticketParameter is the query parameter of a stream's URL that holds a ticket.
const ticketParameter = "ticket"

// ticket replaces a token for one stream. It is part of the URL, since browsers send no headers when they open a
// stream. It expires with the token, and losing access also invalidates it.
type ticket struct {
	TenantID    string `json:"tenant_id"`
	Environment string `json:"environment"`
	ClientID    string `json:"client_id,omitempty"` // of a machine
	SessionID   string `json:"sid,omitempty"`       // of a person
	AuthTime    int64  `json:"auth_time,omitempty"` // of a person, in seconds since 1970

	EmailVerified bool `json:"email_verified,omitempty"` // the person has verified the address
}

func (a *API) ticketKind() keys.Kind {
	return keys.Kind{Type: "stream+jwt", Issuer: a.PublicURL, Audience: a.PublicURL + streamRoute}
}

// streamURL is a cached URL that opens a principal's stream without headers. It is the same on every node for the life
// of the token.
type streamURL struct{ tenantID, environment, base, text string }

// streamURL returns the URL of a stream of changes for a principal.
func (a *API) streamURL(r *http.Request, p *principal) (string, error) {
	made, base := p.stream.Load(), a.baseURL(r)
	if made != nil && made.tenantID == p.tenant.ID() && made.environment == p.environment.Name && made.base == base {
		return made.text, nil
	}
	t, subject := ticket{TenantID: p.tenant.ID(), Environment: p.environment.Name}, p.claims.UserID
	if p.machine != nil {
		t.ClientID, subject = p.machine.clientID, p.machine.clientID
	} else {
		t.SessionID, t.AuthTime = p.claims.SessionID, p.claims.AuthTime.Unix()
		t.EmailVerified = p.claims.EmailProved()
	}
	text, err := a.Keys.SignOwn(a.ticketKind(), subject, p.expires, t)
	if err != nil {
		return "", err
	}
	made = &streamURL{
		t.TenantID,
		t.Environment,
		base,
		base + streamRoute + "?" + url.Values{ticketParameter: {text}}.Encode(),
	}
	p.stream.Store(made)
	return made.text, nil
}

// ticketOf returns the credential of a stream request's ticket, or nil without one. It sets the request's tenant and
// environment headers from the ticket.
func (a *API) ticketOf(r *http.Request) (*credential, error) {
	if routedPath(r) != streamRoute || r.URL.RawQuery == "" {
		return nil, nil
	}
	text := r.URL.Query().Get(ticketParameter)
	if text == "" {
		return nil, nil
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

func (a *API) redeem(ctx context.Context, text string) (*credential, ticket, error) {
	var t ticket
	claims, err := a.Keys.VerifyOwn(ctx, a.ticketKind(), text, &t)
	if err != nil {
		return nil, t, err
	}
	c := &credential{expires: claims.Expiry.Time().UTC()}
	if t.ClientID != "" {
		c.machine = &machine{clientID: t.ClientID, tenantID: t.TenantID, scopes: []events.Scope{streamAccess.scope}}
		return c, t, nil
	}
	c.claims = commands.Claims{
		UserID:        claims.Subject,
		SessionID:     t.SessionID,
		AuthTime:      time.Unix(t.AuthTime, 0).UTC(),
		ExpiresAt:     c.expires,
		EmailVerified: t.EmailVerified,
	}
	return c, t, nil
}
