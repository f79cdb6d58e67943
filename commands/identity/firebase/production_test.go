package firebase

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/commands"
	"flagledger/commands/keep/keys"
)

// google replaces Google's servers for keys, access tokens and accounts.
type google struct {
	t      *testing.T
	mu     sync.Mutex
	keys   map[string]*rsa.PrivateKey // published keys
	users  map[string]map[string]any  // by id, as accounts:lookup returns them
	down   bool
	calls  atomic.Int32
	server *httptest.Server
}

func newKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certificate returns a certificate of the key.
func certificate(t testing.TB, key *rsa.PrivateKey, names ...string) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "google"},
		DNSNames:              names,
		IsCA:                  true,
		BasicConstraintsValid: true,
		NotBefore: time.Now().
			Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// newGoogle answers all calls of this test to googleapis.com.
func newGoogle(t *testing.T) *google {
	t.Helper()
	g := &google{t: t, keys: map[string]*rsa.PrivateKey{"k1": newKey(t)}, users: map[string]map[string]any{}}
	key := newKey(t)
	der := certificate(t, key, "*.googleapis.com")
	g.server = httptest.NewUnstartedServer(g)
	g.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12,
	}
	g.server.StartTLS()
	t.Cleanup(g.server.Close)

	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	ours := http.DefaultTransport
	redirected := ours.(*http.Transport).Clone()
	redirected.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	redirected.TLSClientConfig.RootCAs.AddCert(root)
	redirected.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !strings.HasSuffix(address, ".googleapis.com:443") {
			return nil, fmt.Errorf("a call to %s", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, g.server.Listener.Addr().String())
	}
	http.DefaultTransport = redirected
	t.Cleanup(func() {
		redirected.CloseIdleConnections()
		http.DefaultTransport = ours
	})

	account, err := x509.MarshalPKCS8PrivateKey(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type":           "service_account",
		"project_id":     project,
		"client_email":   "flags@example.com",
		"private_key_id": "a",
		"private_key":    string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: account})),
		"token_uri":      "https://oauth2.googleapis.com/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	t.Setenv("FIREBASE_AUTH_EMULATOR_HOST", "")
	return g
}

// ServeHTTP implements http.Handler.
func (g *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.calls.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		w.WriteHeader(http.StatusNotFound) // clients do not retry it
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=19000, must-revalidate, no-transform")
	var answer any
	switch {
	case strings.HasPrefix(r.URL.Path, "/service_accounts/v1/jwk/securetoken@"):
		var set jose.JSONWebKeySet
		for id, key := range g.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: &key.PublicKey, KeyID: id, Algorithm: "RS256", Use: "sig"})
		}
		answer = set
	case strings.HasPrefix(r.URL.Path, "/robot/v1/metadata/x509/securetoken@"):
		certificates := map[string]string{}
		for id, key := range g.keys {
			certificates[id] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(g.t, key)}))
		}
		answer = certificates
	case r.URL.Path == "/token":
		answer = map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 3600}
	case strings.HasSuffix(r.URL.Path, "/accounts:lookup"):
		var asked struct {
			LocalID []string `json:"localId"`
		}
		if r.Header.Get("Authorization") != "Bearer access" || json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		found := []any{}
		for _, id := range asked.LocalID {
			if user := g.users[id]; user != nil {
				found = append(found, user)
			}
		}
		answer = map[string]any{"users": found}
	default:
		g.t.Errorf("a call to %s", r.URL)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (g *google) change(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

const project = "flags-1234"

// words are the claims of a valid token.
func words() map[string]any {
	now := time.Now().Unix()
	return map[string]any{
		"iss":            "https://securetoken.google.com/" + project,
		"aud":            project,
		"sub":            "u1",
		"user_id":        "u1",
		"iat":            now,
		"exp":            now + 3600,
		"auth_time":      now - 60,
		"email":          "ada@example.com",
		"email_verified": true,
		"name":           "Ada",
		"firebase":       map[string]any{"sign_in_provider": "google.com", "identities": map[string]any{}},
	}
}

func with(name string, value any) map[string]any {
	changed := maps.Clone(words())
	if changed[name] = value; value == nil {
		delete(changed, name)
	}
	return changed
}

func signed(t *testing.T, algorithm jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (g *google) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	return signed(t, jose.RS256, g.keys["k1"], "k1", claims)
}

func production(t *testing.T, o Options) *Provider {
	t.Helper()
	o.ProjectID, o.APIKey = project, "key-to-the-toolkit"
	p, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTokensOfFirebaseItself(t *testing.T) {
	g := newGoogle(t)
	p := production(t, Options{Now: time.Now})
	g.users["u1"] = map[string]any{"localId": "u1", "email": "ada@example.com", "validSince": "1"}
	good := g.sign(t, words())
	part := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k1","typ":"JWT"}`)) + "." + part[1] + "."
	public := x509.MarshalPKCS1PublicKey(&g.keys["k1"].PublicKey)
	hour := func(n int64) int64 { return time.Now().Unix() + n*3600 }
	for name, token := range map[string]string{
		"another issuer":          g.sign(t, with("iss", "https://securetoken.google.com/another-project")),
		"our own issuer":          g.sign(t, with("iss", "http://localhost:8080")),
		"another audience":        g.sign(t, with("aud", "another-project")),
		"no audience":             g.sign(t, with("aud", nil)),
		"expired":                 g.sign(t, with("exp", hour(-1))),
		"never expires":           g.sign(t, with("exp", nil)),
		"of the future":           g.sign(t, with("iat", hour(1))),
		"no subject":              g.sign(t, with("sub", "")),
		"a long subject":          g.sign(t, with("sub", strings.Repeat("x", 129))),
		"no beginning":            g.sign(t, with("auth_time", nil)),
		"no provider":             g.sign(t, with("firebase", nil)),
		"another key":             signed(t, jose.RS256, newKey(t), "k1", words()),
		"a key that nobody knows": signed(t, jose.RS256, newKey(t), "k2", words()),
		"no key id":               signed(t, jose.RS256, g.keys["k1"], "", words()),
		"alg none":                none,
		"HS256 with the key":      signed(t, jose.HS256, public, "k1", words()),
		"RS512":                   signed(t, jose.RS512, g.keys["k1"], "k1", words()),
		"a changed payload":       part[0] + "." + strings.Split(g.sign(t, with("sub", "u2")), ".")[1] + "." + part[2],
		"no signature":            part[0] + "." + part[1] + ".",
		"another spelling":        good[:40] + "\n" + good[40:],
	} {
		_, err := p.Verify(t.Context(), token)
		kindOf(t, err, commands.Unauthenticated)
		before := g.calls.Load()
		_, err = p.Admit(t.Context(), token)
		if kindOf(t, err, commands.Unauthenticated); g.calls.Load() != before {
			t.Errorf("%s: a call was made for a token that does not hold", name)
		}
	}
	claims := words()
	began := time.Unix(claims["auth_time"].(int64), 0)
	good = g.sign(t, claims)
	got, err := p.Verify(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if got.UserID != "u1" || got.Email != "ada@example.com" || !got.EmailVerified || got.DisplayName != "Ada" ||
		got.Provider != "google.com" ||
		!got.AuthTime.Equal(began) ||
		got.SessionID != sessionID(got.AuthTime) {
		t.Errorf("got %+v", got)
	}
	if keys.TypeOf(good) != p.kind().Type {
		t.Error("it may be taken for a machine's token")
	}
	admitted, err := p.Admit(t.Context(), good)
	if err != nil || admitted != got {
		t.Errorf("admitted as %+v: %v", admitted, err)
	}

	g.users["u1"]["validSince"] = fmt.Sprint(time.Now().Unix() + 10)
	_, err = p.Admit(t.Context(), good)
	kindOf(t, err, commands.Unauthenticated)
	g.users["u1"] = map[string]any{"localId": "u1", "email": "ada@example.com", "validSince": "1", "disabled": true}
	_, err = p.Admit(t.Context(), good)
	kindOf(t, err, commands.Unauthenticated)
	delete(g.users, "u1")
	_, err = p.Admit(t.Context(), good)
	kindOf(t, err, commands.Unauthenticated)
}

func TestPeopleAreKnownWhileGoogleCannotBeReached(t *testing.T) {
	g := newGoogle(t)
	var log bytes.Buffer
	now := time.Now()
	clock := &now
	p := production(t, Options{Now: func() time.Time { return *clock }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	good := g.sign(t, words())
	g.change(func() { g.down = true })
	if wait := p.keys.load(t.Context()); wait != keysRetry {
		t.Errorf("the keys are read again in %v", wait)
	}
	if !strings.Contains(log.String(), "those that are known stay") {
		t.Errorf("the log says %s", log.String())
	}
	before := g.calls.Load()
	if _, err := p.Verify(t.Context(), good); err != nil || g.calls.Load() != before {
		t.Errorf("%d calls, %v", g.calls.Load()-before, err)
	}
	_, err := p.Admit(t.Context(), good)
	if kindOf(t, err, commands.Unavailable); strings.Contains(err.Error(), "key-to-the-toolkit") {
		t.Errorf("the error shows a key: %v", err)
	}
	if err := p.check(t.Context()); err == nil || strings.Contains(secretless(err).Error(), "access") {
		t.Errorf("who has been seen cannot be asked after: %v", err)
	}

	fresh := production(t, Options{Now: time.Now}) // starts during the outage
	_, err = fresh.Verify(t.Context(), good)
	kindOf(t, err, commands.Unavailable)
	g.change(func() { g.down = false })
	if wait := fresh.keys.load(t.Context()); wait != 19000*time.Second {
		t.Errorf("keys that are good for 19000 s are read again in %v", wait)
	}
	if _, err := fresh.Verify(t.Context(), good); err != nil {
		t.Error(err)
	}
}

func TestKeysThatAreNewAreFound(t *testing.T) {
	g := newGoogle(t)
	var later atomic.Int64
	p := production(t, Options{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.keys.run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	next := newKey(t)
	g.change(func() { g.keys["k2"] = next })
	token := signed(t, jose.RS256, next, "k2", words())
	before := g.calls.Load()
	for range 100 { // invented ids
		_, err := p.Verify(t.Context(), signed(t, jose.RS256, next, rand.Text(), words()))
		kindOf(t, err, commands.Unauthenticated)
	}
	if n := g.calls.Load() - before; n > 1 {
		t.Errorf("%d calls for keys that nobody has", n)
	}
	later.Store(int64(keysRetry))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := p.Verify(t.Context(), token); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the new key is not found")
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	key := newKey(b)
	p := &Provider{
		o:    Options{ProjectID: project, Now: time.Now},
		keys: newGoogleKeys(time.Now, slog.New(slog.DiscardHandler)),
		seen: xsync.NewMap[string, sighting](),
	}
	p.keys.held.Store(&map[string]*rsa.PublicKey{"k1": &key.PublicKey})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key},
		(&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", "k1"))
	if err != nil {
		b.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(words()).Serialize()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Verify(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
