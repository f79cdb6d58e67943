package keys

import (
	"strings"
	"testing"
	"time"

	"flagledger/migrations/pgtest"
)

type sealed struct {
	Tenant string `json:"tid"`
}

func seal(t testing.TB, k *Keys, expires time.Time, private any) string {
	t.Helper()
	return must(k.Seal(kind, "u1", expires, private))(t)
}

func TestWhatOneNodeSealsAllRead(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	first, second := open(t, pool, c), open(t, pool, c)
	expires := c.now().Add(time.Minute)
	text := seal(t, first, expires, sealed{"t"})
	c.add(10 * time.Second)
	same(t, "what another node seals", seal(t, second, expires, sealed{"t"}), text)
	if seal(t, first, expires, sealed{"other"}) == text || seal(t, first, expires.Add(time.Second), sealed{"t"}) == text {
		t.Error("what says something else is the same text")
	}
	var private sealed
	claims := must(second.Unseal(t.Context(), kind, text, &private))(t)
	same(t, "what it says", []any{private, claims.Subject, claims.Expiry.Time().UTC()}, []any{sealed{"t"}, "u1", expires})
}

func TestWhatIsSealedIsReadAfterItsKeyWasRotated(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	k := open(t, pool, c)
	text := seal(t, k, c.now().Add(time.Hour), sealed{"t"})
	addKey(t, pool, c.now().Add(time.Minute))
	c.add(30 * time.Minute)
	if err := k.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Unseal(t.Context(), kind, text, &sealed{}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotSealedIsRefused(t *testing.T) {
	c := newClock()
	k := open(t, pgtest.Pool(t), c)
	text := seal(t, k, c.now().Add(time.Minute), sealed{"t"})
	parts := strings.Split(text, ".")
	other := kind
	other.Type = "other"
	signed := sign(t, k)
	for what, refused := range map[string]struct{ text, detail string }{
		"a signed token":    {signed, "the token is not signed with HS256"},
		"of another kind":   {must(k.Seal(other, "u1", c.now().Add(time.Minute), sealed{"t"}))(t), "the token is of another kind"},
		"another's seal":    {strings.Join(append(parts[:2:2], strings.Split(seal(t, k, c.now().Add(time.Hour), sealed{"t"}), ".")[2]), "."), "the token's signature does not hold"},
		"one that is over":  {seal(t, k, c.now().Add(-leeway), sealed{"t"}), "the token has expired"},
		"one of no subject": {must(k.Seal(kind, "", c.now().Add(time.Minute), sealed{"t"}))(t), "the token does not tell whose it is"},
		"nothing":           {"", "the token cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			var private sealed
			_, err := k.Unseal(t.Context(), kind, refused.text, &private)
			wantDetail(t, err, refused.detail)
		})
	}
	t.Run("nor is what is sealed taken for signed", func(t *testing.T) {
		wantDetail(t, verify(t.Context(), k, text), "the token is not signed with RS256")
	})
}

func BenchmarkSeal(b *testing.B) {
	k := open(b, pgtest.Pool(b), newClock())
	expires := time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Seal(kind, "u1", expires, sealed{"t"}); err != nil {
			b.Fatal(err)
		}
	}
}
