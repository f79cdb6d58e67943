package keys

import (
	"strings"
	"testing"
	"time"

	"flagledger/migrations/pgtest"
)

type ownClaims struct {
	Tenant string `json:"tid"`
}

func signOwn(t testing.TB, k *Keys, expires time.Time, private any) string {
	t.Helper()
	return must(k.SignOwn(kind, "u1", expires, private))(t)
}

func TestWhatOneNodeSignsAllRead(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	first, second := open(t, pool, c), open(t, pool, c)
	expires := c.now().Add(time.Minute)
	text := signOwn(t, first, expires, ownClaims{"t"})
	c.add(10 * time.Second)
	same(t, "what another node signs", signOwn(t, second, expires, ownClaims{"t"}), text)
	if signOwn(t, first, expires, ownClaims{"other"}) == text ||
		signOwn(t, first, expires.Add(time.Second), ownClaims{"t"}) == text {
		t.Error("what says something else is the same text")
	}
	var private ownClaims
	claims := must(second.VerifyOwn(t.Context(), kind, text, &private))(t)
	same(t, "what it says", []any{private, claims.Subject, claims.Expiry.Time().UTC()},
		[]any{ownClaims{"t"}, "u1", expires})
}

func TestAnOwnTokenIsReadAfterItsKeyWasRotated(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	k := open(t, pool, c)
	text := signOwn(t, k, c.now().Add(time.Hour), ownClaims{"t"})
	addKey(t, pool, c.now().Add(time.Minute))
	c.add(30 * time.Minute)
	if err := k.rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.VerifyOwn(t.Context(), kind, text, &ownClaims{}); err != nil {
		t.Error(err)
	}
}

func TestWhatTheServiceHasNotSignedIsRefused(t *testing.T) {
	c := newClock()
	k := open(t, pgtest.Pool(t), c)
	text := signOwn(t, k, c.now().Add(time.Minute), ownClaims{"t"})
	parts := strings.Split(text, ".")
	other := kind
	other.Type = "other"
	signed := sign(t, k)
	for what, refused := range map[string]struct{ text, detail string }{
		"a signed token":      {signed, "the token is not signed with HS256"},
		"of another kind":     {must(k.SignOwn(other, "u1", c.now().Add(time.Minute), ownClaims{"t"}))(t), "the token is of another kind"},
		"another's signature": {strings.Join(append(parts[:2:2], strings.Split(signOwn(t, k, c.now().Add(time.Hour), ownClaims{"t"}), ".")[2]), "."), "the token's signature does not hold"},
		"one that is over":    {signOwn(t, k, c.now().Add(-leeway), ownClaims{"t"}), "the token has expired"},
		"one of no subject":   {must(k.SignOwn(kind, "", c.now().Add(time.Minute), ownClaims{"t"}))(t), "the token does not tell whose it is"},
		"nothing":             {"", "the token cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			var private ownClaims
			_, err := k.VerifyOwn(t.Context(), kind, refused.text, &private)
			wantDetail(t, err, refused.detail)
		})
	}
	t.Run("nor is a token of the service taken for one that others verify", func(t *testing.T) {
		wantDetail(t, verify(t.Context(), k, text), "the token is not signed with RS256")
	})
}

func BenchmarkSignOwn(b *testing.B) {
	k := open(b, pgtest.Pool(b), newClock())
	expires := time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.SignOwn(kind, "u1", expires, ownClaims{"t"}); err != nil {
			b.Fatal(err)
		}
	}
}
