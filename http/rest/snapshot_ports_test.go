package rest

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/projections/snapshot"
)

// testLive is a Live of people and clients without tenants and keys.
type testLive struct {
	registered, shutOut, ended map[string]bool
	clients                    map[string]*snapshot.Client
}

func (l testLive) Registered(userID string) bool { return l.registered[userID] }

func (l testLive) ShutOut(userID string) bool { return l.shutOut[userID] }

func (l testLive) SessionEnded(_, sessionID string, _ time.Time) bool {
	return l.ended[sessionID]
}

func (l testLive) PlatformRole(string) events.PlatformRole { return events.SuperUser }

func (l testLive) JoinedAt(string, string) time.Time { return time.Time{} }

func (l testLive) TenantsOf(string) []string { return []string{"deleted"} }

func (l testLive) CreatorOf(string) string { return "" }

func (l testLive) RoleIn(string, string) events.Role { return "" }

func (l testLive) Ready() <-chan struct{} { return nil }

func (l testLive) Tenant(string) (*snapshot.Tenant, bool) { return nil, false }

func (l testLive) EvaluationKey([sha256.Size]byte) (*snapshot.EvaluationKey, bool) { return nil, false }

func (l testLive) Client(id string) (c *snapshot.Client, _ bool) {
	c = l.clients[id]
	return c, c != nil
}

func TestWhatIsRevoked(t *testing.T) {
	a := newCore(anonymous(1))
	a.Live = testLive{
		shutOut: map[string]bool{"gone": true}, ended: map[string]bool{"over": true},
		clients: map[string]*snapshot.Client{"c": {ID: "c", TenantID: "t"}},
	}
	for name, c := range map[string]struct {
		credential *Credential
		status     int // 0 if it is valid
	}{
		"a person":                         {&Credential{Claims: people.Claims{UserID: "me", SessionID: "s"}}, 0},
		"a session that has ended":         {&Credential{Claims: people.Claims{UserID: "me", SessionID: "over"}}, 401},
		"a person who was deactivated":     {&Credential{Claims: people.Claims{UserID: "gone", SessionID: "s"}}, 403},
		"a machine":                        {&Credential{Machine: &Machine{ClientID: "c", TenantID: "t"}}, 0},
		"a client that was deleted":        {&Credential{Machine: &Machine{ClientID: "d", TenantID: "t"}}, 401},
		"a token for another tenant's own": {&Credential{Machine: &Machine{ClientID: "c", TenantID: "u"}}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			err := a.checkRevoked(c.credential)
			if c.status == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if p := problemFor(err); p == nil || p.Status != c.status {
				t.Errorf("%v, want %d", err, c.status)
			}
		})
	}
}

// problemFor returns the problem for a refusal.
func problemFor(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if refusal, ok := errors.AsType[*commands.Error](err); ok {
		return refusalProblem(refusal)
	}
	return nil
}

func TestAPlatformRoleNeedsAListedAddress(t *testing.T) {
	a := newCore(anonymous(1))
	a.Live, a.SuperUsers = testLive{}, people.NewSuperUsers([]string{"Root@example.com"})
	for email, want := range map[string]events.PlatformRole{"root@example.com": events.SuperUser, "me@example.com": ""} {
		if got := a.PlatformRole(people.Claims{UserID: "u", Email: email, EmailVerified: true}); got != want {
			t.Errorf("%s is %q, want %q", email, got, want)
		}
	}
	if got := a.PlatformRole(people.Claims{UserID: "u", Email: "root@example.com"}); got != "" {
		t.Errorf("an address that is not verified is %q", got)
	}
}
