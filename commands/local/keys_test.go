package local

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
)

func addKey(t testing.TB, pool *pgxpool.Pool, at time.Time) (kid string) {
	t.Helper()
	der := must(x509.MarshalPKCS8PrivateKey(must(rsa.GenerateKey(rand.Reader, keyBits))(t)))(t)
	kid = uuid.NewString()
	if _, err := pool.Exec(t.Context(), `insert into keep.signing_keys values ($1, $2, $3)`, kid, der, at); err != nil {
		t.Fatal(err)
	}
	return kid
}

// countLoads counts how often a provider reads its keys.
func countLoads(p *Provider) *atomic.Int32 {
	var n atomic.Int32
	load := p.keys.load
	p.keys.load = func(ctx context.Context) (*keySet, error) {
		n.Add(1)
		return load(ctx)
	}
	return &n
}

// forged is a token with a key id that nobody has.
func forged(t testing.TB) string {
	t.Helper()
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: testKey()}, (&jose.SignerOptions{}).WithHeader("kid", uuid.NewString())))(t)
	return must(jwt.Signed(signer).Claims(map[string]any{"sub": "u1"}).Serialize())(t)
}

func TestNodesThatStartAtOnceShareOneKey(t *testing.T) {
	c := newClock()
	pool := database(t)
	nodes := make([]*Provider, 4)
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() { nodes[i], errs[i] = New(t.Context(), pool, options(c)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	up := must(nodes[0].SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	for _, p := range nodes {
		if len(p.JWKS().Keys) != 1 {
			t.Errorf("%d keys", len(p.JWKS().Keys))
		}
		loads := countLoads(p)
		must(p.Verify(t.Context(), up.IDToken))(t)
		if loads.Load() != 0 {
			t.Error("a known key was read again")
		}
	}
	in := must(nodes[1].Refresh(t.Context(), up.RefreshToken))(t)
	must(nodes[2].Verify(t.Context(), in.IDToken))(t)
}

func TestNewestKeySignsAndIsFoundByOtherNodes(t *testing.T) {
	c := newClock()
	pool := database(t)
	before := start(t, pool, options(c))
	old := must(before.SignUp(t.Context(), "ada@example.com", secret, ""))(t)

	kid := addKey(t, pool, c.now().Add(time.Second))
	after := start(t, pool, options(c))
	if got := after.JWKS().Keys; len(got) != 2 || got[0].KeyID != kid {
		t.Errorf("the newest key is not the first of %d", len(got))
	}
	in := must(after.SignIn(t.Context(), "ada@example.com", secret))(t)
	must(after.Verify(t.Context(), old.IDToken))(t)

	loads := countLoads(before)
	for range 3 {
		must(before.Verify(t.Context(), in.IDToken))(t)
		must(before.Verify(t.Context(), old.IDToken))(t)
	}
	if loads.Load() != 1 {
		t.Errorf("the keys were read %d times, want once", loads.Load())
	}
	in = must(before.SignIn(t.Context(), "ada@example.com", secret))(t)
	if got := must(jwt.ParseSigned(in.IDToken, []jose.SignatureAlgorithm{jose.RS256}))(t).Headers[0].KeyID; got != kid {
		t.Errorf("signed with %s, want the newest key %s", got, kid)
	}
}

func TestUnknownKeysDoNotFloodTheDatabase(t *testing.T) {
	c := newClock()
	p := start(t, database(t), options(c))
	loads := countLoads(p)
	tokens := make([]string, 20)
	for i := range tokens {
		tokens[i] = forged(t)
	}
	flood := func() {
		var all sync.WaitGroup
		for _, token := range tokens {
			all.Go(func() {
				_, err := p.Verify(t.Context(), token)
				wantDetail(t, err, "the token is signed with an unknown key")
			})
		}
		all.Wait()
	}
	flood()
	flood()
	c.add(reloadEvery - time.Millisecond)
	flood()
	if n := loads.Load(); n != 1 {
		t.Errorf("%d reads of the keys, want 1", n)
	}
	c.add(time.Millisecond)
	flood()
	if n := loads.Load(); n != 2 {
		t.Errorf("%d reads of the keys, want 2", n)
	}
	c.add(-time.Hour) // a clock set back does not stop them
	flood()
	if n := loads.Load(); n != 3 {
		t.Errorf("%d reads of the keys, want 3", n)
	}
}

func wantDetail(t testing.TB, err error, detail string) {
	t.Helper()
	if e, ok := errors.AsType[*commands.Error](err); !ok || e.Kind != commands.Unauthenticated || e.Detail != detail {
		t.Errorf("got %v, want %q", err, detail)
	}
}

// A caller who goes away must not fail the read that others wait for.
func TestReadOfKeysOutlivesItsCaller(t *testing.T) {
	c := newClock()
	p := withKey(t, c)
	begun, proceed := make(chan struct{}), make(chan struct{})
	held := p.keys.held.Load()
	p.keys.load = func(ctx context.Context) (*keySet, error) {
		close(begun)
		<-proceed
		return held, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	token := forged(t)
	go func() {
		_, err := p.Verify(ctx, token)
		left <- err
	}()
	<-begun
	cancel()
	wantKind(t, <-left, commands.Unavailable)
	close(proceed)
	_, err := p.Verify(t.Context(), token)
	wantDetail(t, err, "the token is signed with an unknown key")
}

func TestUnknownKeyWhileTheDatabaseIsDown(t *testing.T) {
	c := newClock()
	pool := database(t)
	p := start(t, pool, options(c))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	loads := countLoads(p)
	pool.Close()
	for range 5 {
		_, err := p.Verify(t.Context(), forged(t))
		wantKind(t, err, commands.Unavailable)
	}
	if n := loads.Load(); n != 1 {
		t.Errorf("%d reads of the keys, want 1", n)
	}
	must(p.Verify(t.Context(), up.IDToken))(t)
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	c := newClock()
	pool := database(t)
	p := start(t, pool, options(c))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)

	if _, err := pool.Exec(t.Context(), `delete from keep.signing_keys`); err != nil {
		t.Fatal(err)
	}
	_, err := p.Verify(t.Context(), forged(t))
	wantKind(t, err, commands.Internal)
	must(p.Verify(t.Context(), up.IDToken))(t) // the keys that it had stay
	must(p.SignIn(t.Context(), "ada@example.com", secret))(t)

	if _, err := pool.Exec(t.Context(), `insert into keep.signing_keys values ('k9', 'no key', now())`); err != nil {
		t.Fatal(err)
	}
	_, err = New(t.Context(), pool, options(c))
	if wantKind(t, err, commands.Internal); !strings.Contains(err.Error(), "k9") {
		t.Errorf("the error does not name the key: %v", err)
	}
}

func TestJWKSTellsPublicKeysAlone(t *testing.T) {
	p := withKey(t, newClock())
	set := p.JWKS()
	if len(set.Keys) != 1 {
		t.Fatalf("%d keys", len(set.Keys))
	}
	key := set.Keys[0]
	if !key.IsPublic() || !key.Valid() || key.KeyID != "k1" || key.Algorithm != "RS256" || key.Use != "sig" {
		t.Errorf("got %+v", key)
	}
	token := must(jwt.ParseSigned(signed(t, p), []jose.SignatureAlgorithm{jose.RS256}))(t)
	var claims map[string]any
	if err := token.Claims(set, &claims); err != nil {
		t.Errorf("a token does not verify with the set: %v", err)
	}
}
