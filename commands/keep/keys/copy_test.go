package keys

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/migrations/pgtest"
)

func TestTokensAreVerifiedWithACopyOfTheKeysWhileTheDatabaseIsDown(t *testing.T) {
	c, file, log := newClock(), filepath.Join(t.TempDir(), "public-keys"), slog.New(slog.DiscardHandler)
	pool := pgtest.Pool(t)
	k := must(Open(t.Context(), pool, theSecret(t), file, c.now, log))(t)
	c.add(signsFor) // there are two keys now
	if err := k.rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	token := sign(t, k)
	own, err := k.SignOwn(kind, "u1", c.now().Add(time.Minute), struct{}{})
	if err != nil {
		t.Fatal(err)
	}

	down := must(pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none"))(t)
	defer down.Close()
	copied := must(Open(t.Context(), down, theSecret(t), file, c.now, log))(t)
	accepts(t, copied, token)
	if got, want := published(copied), published(k); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the keys %v are known, want %v", got, want)
	}
	_, _, err = copied.Sign(kind, "u1", "", struct{}{})
	wantKind(t, err, commands.Unavailable)
	if same, err := copied.SignOwn(kind, "u1", c.now().Add(time.Minute), struct{}{}); err != nil || same != own {
		t.Errorf("what it signs needs the database: %q, %v", same, err)
	}
	if _, err := copied.VerifyOwn(t.Context(), kind, own, &struct{}{}); err != nil {
		t.Error(err)
	}

	copied.pool = pool // the database is back
	if err := copied.rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	accepts(t, k, sign(t, copied))
}

func TestTheCopyOfTheKeysHoldsPublicOnesAlone(t *testing.T) {
	file, log := filepath.Join(t.TempDir(), "public-keys"), slog.New(slog.DiscardHandler)
	k := must(Open(t.Context(), pgtest.Pool(t), theSecret(t), file, time.Now, log))(t)
	data := must(os.ReadFile(file))(t)
	for _, secret := range []string{`"d":`, `"p":`, `"q":`, "PRIVATE"} {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the file holds %s", secret)
		}
	}
	if info := must(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if k.JWKS().Keys[0].Valid() != true || !k.JWKS().Keys[0].IsPublic() {
		t.Error("the keys that are published are not public")
	}
}

func TestADamagedCopyOfTheKeysIsNotUsed(t *testing.T) {
	file, log := filepath.Join(t.TempDir(), "public-keys"), slog.New(slog.DiscardHandler)
	must(Open(t.Context(), pgtest.Pool(t), theSecret(t), file, time.Now, log))(t)
	data := must(os.ReadFile(file))(t)
	refused := func(what string, damaged []byte) {
		t.Helper()
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readCopy(file); err == nil {
			t.Errorf("%s: it is read", what)
		}
	}
	for i := range data {
		flipped := bytes.Clone(data)
		flipped[i] ^= 1
		refused("another byte", flipped)
		refused("cut off", data[:i])
	}
	down := must(pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none"))(t)
	defer down.Close()
	if _, err := Open(t.Context(), down, theSecret(t), file, time.Now, log); err == nil {
		t.Error("it starts without keys")
	}
}
