package snapshot

import (
	"crypto/sha256"
	"log/slog"
	"slices"
	"testing"
	"time"

	"flagledger/events"
)

func TestSecretsOfAClient(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	hash := func(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }
	slice := func(h [sha256.Size]byte) []byte { return h[:] }
	rotated := func(secret string, at time.Time) events.Recorded {
		r := recorded("tenant-t", 4,
			events.OAuthSecretRotated{ClientID: "c", SecretHash: slice(hash(secret)), PreviousUntil: at.Add(24 * time.Hour)})
		r.Time = at
		return r
	}
	s := of()
	apply := func(e ...events.Recorded) { s.apply(events.Page{Live: true, Events: e}, slog.New(slog.DiscardHandler)) }
	good := func(at time.Time) (secrets []string) {
		c, ok := s.Client("c")
		if !ok {
			return nil
		}
		for _, secret := range []string{"first", "second", "third"} {
			if c.HasSecret(hash(secret), at) {
				secrets = append(secrets, secret)
			}
		}
		return secrets
	}
	want := func(at time.Time, secrets ...string) {
		t.Helper()
		if got := good(at); !slices.Equal(got, secrets) {
			t.Errorf("at %v the secrets %v are good, want %v", at, got, secrets)
		}
	}
	want(noon)
	apply(
		recorded(
			"tenant-t",
			3,
			events.OAuthClientCreated{
				ClientID:   "c",
				Name:       "C",
				Scopes:     []events.Scope{events.FlagsRead},
				SecretHash: slice(hash("first")),
			},
		),
	)
	want(noon, "first")
	before, _ := s.Client("c")

	apply(rotated("second", noon))
	want(noon.Add(24*time.Hour-1), "first", "second")
	want(noon.Add(24*time.Hour), "second")
	apply(rotated("third", noon.Add(time.Hour)))
	want(noon.Add(2*time.Hour), "first", "second", "third")
	want(noon.Add(24*time.Hour), "second", "third")
	want(noon.Add(25*time.Hour), "third")
	apply(rotated("fourth", noon.Add(48*time.Hour)))
	if c, _ := s.Client("c"); len(c.Secrets) != 2 {
		t.Errorf("%d secrets are kept, want 2", len(c.Secrets))
	}
	if !before.HasSecret(hash("first"), noon.Add(48*time.Hour)) {
		t.Error("a client that a request holds has changed")
	}

	apply(recorded("tenant-t", 4, events.OAuthSecretRotated{ClientID: "d", SecretHash: []byte("x")}))
	if _, ok := s.Client("d"); ok {
		t.Error("a rotation makes a client")
	}
	apply(recorded("tenant-t", 5, events.OAuthClientDeleted{ClientID: "c"}))
	want(noon)
}

func TestWithItsTenantAClientEnds(t *testing.T) {
	s := of()
	s.apply(events.Page{Live: true, Events: []events.Recorded{
		recorded("tenant-t", 3, events.OAuthClientCreated{ClientID: "c", SecretHash: make([]byte, sha256.Size)}),
		recorded("tenant-u", 1, events.TenantCreated{ID: "u"}),
		recorded("tenant-u", 2, events.OAuthClientCreated{ClientID: "d", SecretHash: make([]byte, sha256.Size)}),
		recorded("tenant-t", 4, events.TenantDeleted{}),
	}}, slog.New(slog.DiscardHandler))
	if _, ok := s.Client("c"); ok {
		t.Error("the client of a deleted tenant is there")
	}
	if c, ok := s.Client("d"); !ok || c.TenantID != "u" {
		t.Error("another tenant's client is gone")
	}
	if n := s.clients.Size(); n != 1 {
		t.Errorf("%d clients are kept, want 1", n)
	}
}
