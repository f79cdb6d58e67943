package keys

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// clock is a clock that a test sets.
type clock struct {
	sync.Mutex
	t time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.Lock()
	defer c.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.Lock()
	defer c.Unlock()
	c.t = c.t.Add(d)
}

func open(t testing.TB, pool *pgxpool.Pool, c *clock) *Keys {
	t.Helper()
	return openWith(t, pool, c, aSecret)
}

const aSecret, anotherSecret = "a secret of thirty-two characters", "another secret that has 32 characters"

func theSecret(t testing.TB) Secret { return must(ParseSecret(aSecret))(t) }

func openWith(t testing.TB, pool *pgxpool.Pool, c *clock, secret string) *Keys {
	t.Helper()
	return must(tryOpen(t, pool, c, secret))(t)
}

func tryOpen(t testing.TB, pool *pgxpool.Pool, c *clock, secret string) (*Keys, error) {
	t.Helper()
	return Open(t.Context(), pool, must(ParseSecret(secret))(t), "", c.now, slog.New(slog.DiscardHandler))
}

// must fails the test on an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantKind(t testing.TB, err error, kind commands.Kind) {
	t.Helper()
	if e, ok := errors.AsType[*commands.Error](err); !ok || e.Kind != kind {
		t.Errorf("got error %v, want kind %d", err, kind)
	}
}

func wantDetail(t testing.TB, err error, detail string) {
	t.Helper()
	if e, ok := errors.AsType[*commands.Error](err); !ok || e.Kind != commands.Unauthenticated || e.Detail != detail {
		t.Errorf("got %v, want %q", err, detail)
	}
}

var kind = Kind{Type: "JWT", Issuer: "http://localhost:8080", Audience: "tests"}

func sign(t testing.TB, k *Keys) string {
	t.Helper()
	text, _, err := k.Sign(kind, "u1", "", struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func verify(ctx context.Context, k *Keys, text string) error {
	_, err := k.Verify(ctx, kind, text, &struct{}{})
	return err
}

func accepts(t testing.TB, k *Keys, text string) {
	t.Helper()
	if err := verify(t.Context(), k, text); err != nil {
		t.Error(err)
	}
}

// signedBy returns the id of the key that signed a token.
func signedBy(t testing.TB, text string) string {
	t.Helper()
	return must(jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256}))(t).Headers[0].KeyID
}

// published returns the ids of the keys in the JWKS.
func published(k *Keys) (ids []string) {
	for _, key := range k.JWKS().Keys {
		ids = append(ids, key.KeyID)
	}
	return ids
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// countLoads counts the reads of the keys.
func countLoads(k *Keys) *atomic.Int32 {
	var n atomic.Int32
	load := k.load
	k.load = func(ctx context.Context) (*set, error) {
		n.Add(1)
		return load(ctx)
	}
	return &n
}

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		panic(err)
	}
	return key
})

// addKey adds a key that signs from a time on.
func addKey(t testing.TB, pool *pgxpool.Pool, from time.Time) (id string) {
	t.Helper()
	der := must(x509.MarshalPKCS8PrivateKey(must(rsa.GenerateKey(rand.Reader, keyBits))(t)))(t)
	id = uuid.NewString()
	if _, err := pool.Exec(
		t.Context(), `insert into keep.signing_keys values ($1, $2, $3, $3)`, id, der, from,
	); err != nil {
		t.Fatal(err)
	}
	return id
}

// forged returns a token with an unknown key id.
func forged(t testing.TB) string {
	t.Helper()
	signer := must(
		jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: testKey()},
			(&jose.SignerOptions{}).WithHeader("kid", uuid.NewString())),
	)(t)
	return must(jwt.Signed(signer).Claims(map[string]any{"sub": "u1"}).Serialize())(t)
}

func TestAKeyOfAnotherNodeIsFound(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	before := open(t, pool, c)
	old := sign(t, before)

	id := addKey(t, pool, c.now().Add(time.Second))
	after := open(t, pool, c)
	if got := published(after); len(got) != 2 || got[0] != id {
		t.Errorf("the newest key is not the first of %d", len(got))
	}
	c.add(time.Second)
	token := sign(t, after)
	same(t, "who signs", signedBy(t, token), id)
	accepts(t, after, old)

	loads := countLoads(before)
	for range 3 {
		accepts(t, before, token)
		accepts(t, before, old)
	}
	if loads.Load() != 1 {
		t.Errorf("the keys were read %d times, want once", loads.Load())
	}
	same(t, "who signs", signedBy(t, sign(t, before)), id)
}

func TestAClockThatIsSetBackFindsAKey(t *testing.T) {
	c := newClock()
	k := open(t, pgtest.Pool(t), c)
	c.add(-48 * time.Hour)
	accepts(t, k, sign(t, k))
}

func TestUnknownKeysDoNotFloodTheDatabase(t *testing.T) {
	c := newClock()
	k := open(t, pgtest.Pool(t), c)
	loads := countLoads(k)
	tokens := make([]string, 20)
	for i := range tokens {
		tokens[i] = forged(t)
	}
	flood := func() {
		var all sync.WaitGroup
		for _, token := range tokens {
			all.Go(func() { wantDetail(t, verify(t.Context(), k, token), "the token is signed with an unknown key") })
		}
		all.Wait()
	}
	flood()
	flood()
	c.add(minReloadInterval - time.Millisecond)
	flood()
	if n := loads.Load(); n != 1 {
		t.Errorf("%d reads of the keys, want 1", n)
	}
	c.add(time.Millisecond)
	flood()
	if n := loads.Load(); n != 2 {
		t.Errorf("%d reads of the keys, want 2", n)
	}
	c.add(-time.Hour) // a clock that runs back does not stop them
	flood()
	if n := loads.Load(); n != 3 {
		t.Errorf("%d reads of the keys, want 3", n)
	}
}

// A caller that disconnects must not fail a read that others wait for.
func TestReadOfKeysOutlivesItsCaller(t *testing.T) {
	k := open(t, pgtest.Pool(t), newClock())
	begun, proceed := make(chan struct{}), make(chan struct{})
	held := k.held.Load()
	k.load = func(ctx context.Context) (*set, error) {
		close(begun)
		<-proceed
		return held, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	token := forged(t)
	go func() { left <- verify(ctx, k, token) }()
	<-begun
	cancel()
	wantKind(t, <-left, commands.Unavailable)
	close(proceed)
	wantDetail(t, verify(t.Context(), k, token), "the token is signed with an unknown key")
}

func TestWhileTheDatabaseIsDown(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	k := open(t, pool, c)
	token := sign(t, k)
	loads := countLoads(k)
	pool.Close()
	for range 5 {
		wantKind(t, verify(t.Context(), k, forged(t)), commands.Unavailable)
	}
	if n := loads.Load(); n != 1 {
		t.Errorf("%d reads of the keys, want 1", n)
	}
	accepts(t, k, token)
	c.add(signsFor)
	wantKind(t, k.rotate(t.Context()), commands.Unavailable)
	accepts(t, k, sign(t, k))

	_, err := tryOpen(t, pool, c, aSecret)
	wantKind(t, err, commands.Unavailable)
	elsewhere := must(pgxpool.New(t.Context(), "postgres://nobody:hunter22@127.0.0.1:1/nothing"))(t)
	defer elsewhere.Close()
	_, err = tryOpen(t, elsewhere, c, aSecret)
	if wantKind(t, err, commands.Unavailable); strings.Contains(err.Error(), "hunter22") {
		t.Errorf("the error shows the database's password: %v", err)
	}
}

// After a failover the database is a standby: a key that is due then is published later.
func TestADatabaseThatIsReadOnly(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	token := sign(t, open(t, pool, c))
	name := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
	if _, err := pool.Exec(t.Context(), `alter database `+name+` set default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	pool.Reset()
	accepts(t, open(t, pool, c), token)
	c.add(signsFor)
	k := open(t, pool, c)
	accepts(t, k, sign(t, k))
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	k := open(t, pool, c)
	token := sign(t, k)
	if _, err := pool.Exec(t.Context(), `delete from keep.signing_keys`); err != nil {
		t.Fatal(err)
	}
	wantKind(t, verify(t.Context(), k, forged(t)), commands.Internal)
	accepts(t, k, token) // the known keys stay
	accepts(t, k, sign(t, k))

	for _, bad := range []string{"hunter22", string(must(x509.MarshalPKCS8PrivateKey(must(x509.ParsePKCS8PrivateKey(ed25519))(t)))(t))} {
		if _, err := pool.Exec(t.Context(), `delete from keep.signing_keys`); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(
			t.Context(), `insert into keep.signing_keys values ('k9', $1, now(), now())`, []byte(bad),
		); err != nil {
			t.Fatal(err)
		}
		_, err := tryOpen(t, pool, c, aSecret)
		if wantKind(t, err, commands.Internal); !strings.Contains(err.Error(), "k9") ||
			strings.Contains(err.Error(), "hunter22") {
			t.Errorf("the error does not name the key, or shows it: %v", err)
		}
	}
}

// ed25519 is a key of a different kind (RFC 8410, 10.3).
var ed25519 = append(
	[]byte("\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"),
	bytes.Repeat([]byte{7}, 32)...)

func TestJWKSTellsPublicKeysAlone(t *testing.T) {
	c := newClock()
	k := open(t, pgtest.Pool(t), c)
	c.add(signsFor)
	if err := k.rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	jwks := k.JWKS()
	if len(jwks.Keys) != 2 {
		t.Fatalf("%d keys", len(jwks.Keys))
	}
	for _, key := range jwks.Keys {
		if !key.IsPublic() || !key.Valid() || key.KeyID == "" || key.Algorithm != "RS256" || key.Use != "sig" {
			t.Errorf("got %+v", key)
		}
	}
	token := must(jwt.ParseSigned(sign(t, k), []jose.SignatureAlgorithm{jose.RS256}))(t)
	var claims map[string]any
	if err := token.Claims(jwks, &claims); err != nil {
		t.Errorf("a token does not verify with the set: %v", err)
	}
}

func TestTypeOf(t *testing.T) {
	k := open(t, pgtest.Pool(t), newClock())
	for text, want := range map[string]string{
		sign(t, k): "JWT", forged(t): "", "": "", ".": "", "e30.e30.": "", "!.": "", strings.Repeat("A", maxToken+1) + ".": "", "W10": "", "eyJ0eXAiOjF9": "",
	} {
		if got := TypeOf(text); got != want {
			t.Errorf("%.20s: %q, want %q", text, got, want)
		}
	}
}
