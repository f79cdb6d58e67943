package keys

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/migrations/pgtest"
)

// stored returns the private keys as they are in the database.
func stored(t testing.TB, pool *pgxpool.Pool) [][]byte {
	t.Helper()
	rows := must(pool.Query(t.Context(), `select private_key from keep.signing_keys order by kid`))(t)
	return must(pgx.CollectRows(rows, pgx.RowTo[[]byte]))(t)
}

func wantEncrypted(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	list := stored(t, pool)
	if len(list) != n {
		t.Fatalf("there are %d keys, want %d", len(list), n)
	}
	for _, text := range list {
		// RSA's identifier
		if _, err := x509.ParsePKCS8PrivateKey(text); err == nil ||
			bytes.Contains(text, []byte{0x2a, 0x86, 0x48, 0x86, 0xf7}) {
			t.Error("a private key stands in the database unencrypted")
		}
	}
}

func TestPrivateKeysStandEncrypted(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	k := open(t, pool, c)
	wantEncrypted(t, pool, 1)
	token := sign(t, k)
	accepts(t, open(t, pool, c), token)
}

func TestKeysFromBeforeAreEncryptedAtTheStart(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	id := addKey(t, pool, c.now())
	k := open(t, pool, c)
	wantEncrypted(t, pool, 1)
	token := sign(t, k)
	same(t, "who signs", signedBy(t, token), id)
	accepts(t, open(t, pool, c), token)
}

func TestANodeWithAnotherSecretDoesNotStart(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	k := open(t, pool, c)
	before, token := stored(t, pool), sign(t, k)
	c.add(2 * signsFor) // a key is due, and another has expired
	if _, err := tryOpen(t, pool, c, anotherSecret); !errors.Is(err, errSecret) ||
		!strings.Contains(err.Error(), "FLAGLEDGER_SECRET") {
		t.Errorf("it starts, or does not name the setting: %v", err)
	}
	same(t, "the keys", stored(t, pool), before)
	c.add(-2 * signsFor)
	accepts(t, open(t, pool, c), token)
}

func TestASecretIsReplacedByAnother(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	first := open(t, pool, c)
	token, ticket := sign(t, first), signOwn(t, first, c.now().Add(time.Minute), ownClaims{"t"})

	both := openWith(t, pool, c, anotherSecret+", "+aSecret)
	accepts(t, both, token)
	if _, err := both.VerifyOwn(t.Context(), kind, ticket, &ownClaims{}); err != nil {
		t.Errorf("what the old secret has signed: %v", err)
	}
	accepts(t, first, sign(t, both))
	if err := first.rotate(t.Context()); !errors.Is(err, errSecret) {
		t.Errorf("a node with the old secret alone: %v", err)
	}
	accepts(t, first, token) // it still uses the keys that it knows

	after := openWith(t, pool, c, anotherSecret)
	accepts(t, after, token)
	_, err := after.VerifyOwn(t.Context(), kind, ticket, &ownClaims{})
	wantDetail(t, err, "the token is signed with an unknown key")
	if _, err := tryOpen(t, pool, c, aSecret); !errors.Is(err, errSecret) {
		t.Errorf("the old secret still opens the keys: %v", err)
	}
}

func TestAKeyIsNotTakenForAnother(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	open(t, pool, c)
	if _, err := pool.Exec(t.Context(), `update keep.signing_keys set kid = 'another'`); err != nil {
		t.Fatal(err)
	}
	if _, err := tryOpen(t, pool, c, aSecret); !errors.Is(err, errSecret) {
		t.Errorf("a key under another's id is read: %v", err)
	}
}

func TestSecretsThatAreTooShortAreRefused(t *testing.T) {
	for _, text := range []string{"", "sesame", strings.Repeat("x", MinSecret-1), strings.Repeat("x", MinSecret) + ",", strings.Repeat("x", MinSecret) + ",sesame"} {
		if _, err := ParseSecret(text); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q is taken, or is repeated: %v", text, err)
		}
	}
}

func TestABoxDecryptsWhatItEncrypted(t *testing.T) {
	box := must(must(ParseSecret(aSecret))(t).Box("tests"))(t)
	other := must(must(ParseSecret(aSecret))(t).Box("other tests"))(t)
	text := box.Encrypt([]byte("text"), []byte("about"))
	if opened, _, ok := box.Decrypt(text, []byte("about")); !ok || string(opened) != "text" {
		t.Errorf("opened %q, %v", opened, ok)
	}
	if bytes.Equal(text, box.Encrypt([]byte("text"), []byte("about"))) {
		t.Error("the same text is the same twice")
	}
	if _, _, ok := box.Decrypt(text, []byte("something else")); ok {
		t.Error("it opens about something else")
	}
	if _, _, ok := other.Decrypt(text, []byte("about")); ok {
		t.Error("it opens for another purpose")
	}
	text[len(text)-1] ^= 1
	if _, _, ok := box.Decrypt(text, []byte("about")); ok {
		t.Error("it opens changed")
	}
	if _, _, ok := box.Decrypt(nil, nil); ok {
		t.Error("nothing opens")
	}
}
