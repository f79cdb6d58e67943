package rest

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands"
	"flagledger/commands/identity/local"
	"flagledger/commands/keep/keys"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/http/quota"
	"flagledger/migrations/pgtest"
	"flagledger/projections/snapshot"
)

// benchAPI is an API with a person and an OAuth client, and a token for each.
func benchAPI(b *testing.B) (a *Core, tokens map[string]string) {
	b.Helper()
	ctx, log, url := b.Context(), slog.New(slog.DiscardHandler), pgtest.Migrated(b)
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	pool, err := pgxpool.New(ctx, url)
	must(err)
	b.Cleanup(pool.Close)
	secret, err := keys.ParseSecret("a secret of thirty-two characters")
	must(err)
	signing, err := keys.Open(ctx, pool, secret, "", time.Now, log)
	must(err)
	store, err := postgres.Open(ctx, url, log)
	must(err)
	b.Cleanup(store.Close)
	var batch []events.Event
	for _, fact := range []events.Fact{
		events.TenantCreated{ID: "t", Name: "T", Plan: events.FreePlan},
		events.OAuthClientCreated{ClientID: "c", Name: "C", Scopes: []events.Scope{events.FlagsRead, events.FlagsEvaluate}, SecretHash: make([]byte, 32)},
	} {
		batch = append(batch, events.Event{ID: uuid.New(), Metadata: events.Metadata{Time: time.Now().UTC()}, Fact: fact})
	}
	_, err = store.Append(ctx, events.TenantStream("t"), 0, batch)
	must(err)
	live := snapshot.New(snapshot.Options{})
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		live.Run(running, store, func(events.Page) {}, log)
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
	<-live.Ready()

	const publicURL = "https://flags.example.com"
	identity := local.New(
		pool,
		local.Options{
			Keys:                 signing,
			Issuer:               publicURL,
			Audience:             "flagledger",
			AssumeEmailsVerified: true,
			Now:                  time.Now,
			HashMemory:           8,
		},
	)
	session, err := identity.SignUp(ctx, "me@example.com", "correct horse", "Ada Lovelace")
	must(err)
	a = New(Options{
		Reads:     2,
		Live:      live,
		Metrics:   prometheus.NewRegistry(),
		Log:       log,
		Keys:      signing,
		Identity:  identity,
		PublicURL: publicURL,
		Now:       time.Now,
		Quotas:    &quota.Tenants{Limiter: quota.NewLimiter(quota.Limits{}, nil, time.Now)},
	})
	token, err := a.Verifier.Machines.Issue(commands.NewID(), "t", nil)
	must(err)
	if _, err := a.Authenticate(ctx, token); err == nil {
		b.Fatal("the token of a client that is not known is accepted")
	}
	token, err = a.Verifier.Machines.Issue("c", "t", []events.Scope{events.FlagsRead, events.FlagsEvaluate})
	must(err)
	return a, map[string]string{"machine": token, "person": session.IDToken}
}

// BenchmarkAuthenticate identifies the caller of a request. "first" verifies the token's signature, as the first
// request with a token does.
func BenchmarkAuthenticate(b *testing.B) {
	a, tokens := benchAPI(b)
	for who, token := range tokens {
		r := httptest.NewRequest(http.MethodPost, EvaluateRoute, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		authenticate := func(b *testing.B) {
			if c, err := a.bearer(r); err != nil || (c.Machine != nil) != (who == "machine") {
				b.Fatal(c, err)
			}
		}
		b.Run(who+"/cached", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				authenticate(b)
			}
		})
		b.Run(who+"/first", func(b *testing.B) {
			b.ReportAllocs()
			key := sha256.Sum256([]byte(token))
			for b.Loop() {
				a.Verifier.verified.Delete(key)
				authenticate(b)
			}
		})
	}
}
