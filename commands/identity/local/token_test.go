package local

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/migrations/pgtest"
)

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// withKey is a provider with a single key, k1, which the tests know.
func withKey(t testing.TB, c *clock) *Provider {
	t.Helper()
	pool := pgtest.Pool(t)
	der := must(x509.MarshalPKCS8PrivateKey(testKey()))(t)
	if _, err := pool.Exec(
		t.Context(), `insert into keep.signing_keys values ('k1', $1, $2, $2)`, der, c.now(),
	); err != nil {
		t.Fatal(err)
	}
	return start(t, pool, options(c))
}

func signed(t testing.TB, p *Provider) string {
	t.Helper()
	text, _, err := p.sign(person{userID: "u1", email: "ada@example.com", displayName: "Ada", verified: true},
		session{id: "s1", authTime: p.now().Add(-time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func segment(t testing.TB, v any) string {
	t.Helper()
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(v))(t))
}

// payloadOf reads a token's payload.
func payloadOf(t testing.TB, token string) map[string]any {
	t.Helper()
	raw := must(base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1]))(t)
	var payload map[string]any
	if err := json.Unmarshal(raw, &payload); err != nil {
		t.Fatal(err)
	}
	return payload
}

func TestTokenHasFirebasesShape(t *testing.T) {
	c := newClock()
	token := signed(t, withKey(t, c))
	at := float64(c.now().Unix())
	want := map[string]any{
		"iss":            "http://localhost:8080",
		"aud":            "flagledger",
		"auth_time":      at - 60,
		"user_id":        "u1",
		"sub":            "u1",
		"iat":            at,
		"exp":            at + 3600,
		"email":          "ada@example.com",
		"email_verified": true,
		"name":           "Ada",
		"sid":            "s1",
		"firebase": map[string]any{
			"identities":       map[string]any{"email": []any{"ada@example.com"}},
			"sign_in_provider": "password",
		},
	}
	if diff := cmp.Diff(want, payloadOf(t, token)); diff != "" {
		t.Error(diff)
	}
	var header map[string]any
	if err := json.Unmarshal(
		must(base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0]))(t), &header,
	); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"alg": "RS256", "kid": "k1", "typ": "JWT"}, header); diff != "" {
		t.Error(diff)
	}
}

func TestVerify(t *testing.T) {
	c := newClock()
	p := withKey(t, c)
	now := c.now().Unix()
	good := payloadOf(t, signed(t, p))
	parts := strings.Split(signed(t, p), ".")
	pub := must(x509.MarshalPKIXPublicKey(&testKey().PublicKey))(t)
	otherKey := must(rsa.GenerateKey(rand.Reader, 2048))(t)

	with := func(key string, value any) map[string]any {
		m := maps.Clone(good)
		if m[key] = value; value == nil {
			delete(m, key)
		}
		return m
	}
	sign := func(alg jose.SignatureAlgorithm, key any, kid string, payload any, typ ...string) string {
		t.Helper()
		options := (&jose.SignerOptions{}).WithHeader("kid", kid).
			WithHeader("typ", strings.Join(append(typ, []string{"JWT"}[len(typ):]...), ""))
		signer := must(jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options))(t)
		return must(jwt.Signed(signer).Claims(payload).Serialize())(t)
	}
	says := func(key string, value any) string { return sign(jose.RS256, testKey(), "k1", with(key, value)) }
	embedded := must(
		jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: otherKey}, (&jose.SignerOptions{EmbedJWK: true})),
	)(t)
	pss := sign(jose.PS256, testKey(), "k1", good)
	crit := must(
		jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: testKey()},
			(&jose.SignerOptions{}).WithHeader("kid", "k1").WithHeader("crit", []string{"x"}).WithHeader("x", 1)),
	)(t)

	known := must(
		jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: testKey()},
			(&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", "k1")),
	)(t)
	list := must(known.Sign([]byte("[1]")))(t)
	// The last character of 256 bytes has four unused bits.
	stray := string(alphabet[strings.IndexByte(alphabet, parts[2][len(parts[2])-1])+1])

	const (
		unreadable = "the token cannot be read"
		unsigned   = "the token's signature does not hold"
		notRS256   = "the token is not signed with RS256"
		unknown    = "the token is signed with an unknown key"
		expired    = "the token has expired"
		early      = "the token is not valid yet"
		undated    = "the token does not tell when it was issued and when it expires"
		nobodys    = "the token does not tell whose it is"
		audience   = "the token is for another audience"
		issuer     = "the token is from another issuer"
	)
	for name, v := range map[string]struct{ token, want string }{
		"good":                     {signed(t, p), ""},
		"signed elsewhere":         {sign(jose.RS256, testKey(), "k1", good), ""},
		"one audience of two":      {says("aud", []string{"x", "flagledger"}), ""},
		"just expired":             {says("exp", now-9), ""},
		"clocks apart":             {says("iat", now+10), ""},
		"already valid":            {says("nbf", now+10), ""},
		"expired":                  {says("exp", now-10), expired},
		"long expired":             {says("exp", -1e15), expired},
		"no expiry":                {says("exp", nil), undated},
		"expiry is text":           {says("exp", "tomorrow"), unreadable},
		"expiry overflows":         {says("exp", 1e300), unreadable},
		"no issue time":            {says("iat", nil), undated},
		"issued tomorrow":          {says("iat", now+11), early},
		"valid tomorrow":           {says("nbf", now+11), early},
		"other issuer":             {says("iss", "https://securetoken.google.com/x"), issuer},
		"no issuer":                {says("iss", nil), issuer},
		"other audience":           {says("aud", "x"), audience},
		"no audience":              {says("aud", nil), audience},
		"audience in other case":   {says("aud", "FlagLedger"), audience},
		"no subject":               {says("sub", nil), nobodys},
		"empty subject":            {says("sub", ""), nobodys},
		"subject is a number":      {says("sub", 1), unreadable},
		"of another kind":          {sign(jose.RS256, testKey(), "k1", good, "at+jwt"), "the token is of another kind"},
		"of no kind":               {sign(jose.RS256, testKey(), "k1", good, ""), "the token is of another kind"},
		"no session":               {says("sid", nil), nobodys},
		"wrong key":                {sign(jose.RS256, otherKey, "k1", good), unsigned},
		"key of its own":           {must(jwt.Signed(embedded).Claims(good).Serialize())(t), "the token does not name its key"},
		"unknown key":              {sign(jose.RS256, otherKey, "k2", good), unknown},
		"no key id":                {sign(jose.RS256, testKey(), "", good), "the token does not name its key"},
		"alg none":                 {segment(t, map[string]any{"alg": "none", "kid": "k1"}) + "." + parts[1] + ".", notRS256},
		"alg none with signature":  {segment(t, map[string]any{"alg": "none", "kid": "k1"}) + "." + parts[1] + "." + parts[2], notRS256},
		"no alg":                   {segment(t, map[string]any{"kid": "k1"}) + "." + parts[1] + "." + parts[2], notRS256},
		"alg in other case":        {segment(t, map[string]any{"alg": "rs256", "kid": "k1"}) + "." + parts[1] + "." + parts[2], notRS256},
		"HS256 with DER as secret": {sign(jose.HS256, pub, "k1", good), notRS256},
		"HS256 with PEM as secret": {sign(jose.HS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), "k1", good), notRS256},
		"PS256":                    {pss, notRS256},
		"RS512":                    {sign(jose.RS512, testKey(), "k1", good), notRS256},
		"RS256 by name alone":      {parts[0] + "." + strings.Split(pss, ".")[1] + "." + strings.Split(pss, ".")[2], unsigned},
		"critical extension":       {must(jwt.Signed(crit).Claims(good).Serialize())(t), unreadable},
		"tampered payload":         {parts[0] + "." + segment(t, with("sub", "u2")) + "." + parts[2], unsigned},
		"tampered header":          {segment(t, map[string]any{"alg": "RS256", "kid": "k1", "typ": "JWT", "x": 1}) + "." + parts[1] + "." + parts[2], unsigned},
		"no signature":             {parts[0] + "." + parts[1] + ".", unsigned},
		"two parts":                {parts[0] + "." + parts[1], unreadable},
		"four parts":               {strings.Join(parts, ".") + ".", unreadable},
		"line break in payload":    {parts[0] + "." + parts[1][:4] + "\n" + parts[1][4:] + "." + parts[2], unreadable},
		"line break at the end":    {strings.Join(parts, ".") + "\r\n", unreadable},
		"stray bits":               {strings.Join(parts, ".")[:len(strings.Join(parts, "."))-1] + stray, unreadable},
		"in space":                 {" " + strings.Join(parts, "."), unreadable},
		"padded":                   {strings.Join(parts, ".") + "==", unreadable},
		"JSON serialization":       {`{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`, unreadable},
		"payload is no object":     {must(list.CompactSerialize())(t), unreadable},
		"garbage":                  {"\x00\xff..", unreadable},
		"empty":                    {"", unreadable},
		"dots":                     {"..", notRS256},
		"oversized":                {signed(t, p) + strings.Repeat("A", 8<<10), "the token is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.Verify(t.Context(), v.token)
			if v.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got.UserID != "u1" || got.SessionID != "s1" || got.Provider != "password" || !got.EmailVerified ||
					got.DisplayName != "Ada" {
					t.Errorf("got %+v", got)
				}
				return
			}
			if e := refusal(t, err, commands.Unauthenticated); e.Detail != v.want || e.Err != nil {
				t.Errorf("got %v, want %q", err, v.want)
			}
			if got != (people.Claims{}) {
				t.Errorf("a refused token tells %+v", got)
			}
		})
	}
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func TestVerifyAcceptsNoChangedToken(t *testing.T) {
	p := withKey(t, newClock())
	token := signed(t, p)
	for i := range token {
		for _, changed := range []string{token[:i] + token[i+1:], token[:i] + string(token[i]^1) + token[i+1:], token[:i] + "A" + token[i:], token[:i] + "\n" + token[i:]} {
			if _, err := p.Verify(t.Context(), changed); err == nil && changed != token {
				t.Fatalf("accepted with a change at %d of %d", i, len(token))
			}
		}
	}
}

func FuzzVerify(f *testing.F) {
	c := newClock()
	p := withKey(f, c)
	token := signed(f, p)
	f.Add(token)
	f.Add(strings.Replace(token, ".", "\n.", 1))
	f.Add(segment(f, map[string]any{"alg": "none", "kid": "k1"}) + "." + segment(f, payloadOf(f, token)) + ".")
	f.Add(
		segment(
			f,
			map[string]any{"alg": "RS256", "kid": "k9", "crit": []string{"b64"}, "b64": false},
		) + ".." + strings.Split(token, ".")[2],
	)
	f.Add(
		segment(
			f,
			map[string]any{"alg": "RS256", "kid": "k1", "jwk": map[string]any{"kty": "RSA", "n": "AQAB", "e": "AQAB"}},
		) + ".e30.AA",
	)
	f.Fuzz(func(t *testing.T, text string) {
		_, err := p.Verify(t.Context(), text)
		if text == token {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if e, ok := errors.AsType[*commands.Error](err); !ok || e.Kind != commands.Unauthenticated {
			t.Errorf("%q: got %v", text, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	p := withKey(b, newClock())
	token := signed(b, p)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Verify(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
