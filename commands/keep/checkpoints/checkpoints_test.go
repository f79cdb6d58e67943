package checkpoints_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/commands/keep/checkpoints"
	"flagledger/commands/keep/keys"
	"flagledger/events/proof"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const first, second = "the first secret of all these tests", "the second secret of these tests"

func open(t *testing.T, pool *pgxpool.Pool, secret string) *checkpoints.Checkpoints {
	t.Helper()
	parsed, err := keys.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoints.New(pool, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAllNodesSignWithOneKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if key, err := checkpoints.NewReader(pool).StoredKey(t.Context()); err != nil || key != "" {
		t.Errorf("before it was asked for, the key is %q, %v", key, err)
	}
	found := make([]string, 8)
	var asking sync.WaitGroup
	for i := range found {
		asking.Go(func() {
			var err error
			if found[i], err = open(t, pool, first).VerifierKey(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if list := slices.Compact(slices.Clone(found)); len(list) != 1 || !strings.HasPrefix(list[0], "flagledger+") {
		t.Errorf("there are the keys %v", list)
	}
	if key, err := checkpoints.NewReader(pool).StoredKey(t.Context()); err != nil || key != found[0] {
		t.Errorf("without the secret, the key is %s, %v, want %s", key, err, found[0])
	}
	var stored []byte
	if err := pool.QueryRow(t.Context(), `select private_key from keep.audit_key`).
		Scan(&stored); err != nil ||
		bytes.Contains(stored, []byte("PRIVATE")) {
		t.Errorf("the key is not encrypted: %v", err)
	}
	if _, err := open(t, pool, second).VerifierKey(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "FLAGLEDGER_SECRET") {
		t.Errorf("under another secret: %v", err)
	}
	// The secret is replaced: new,old, and then new alone.
	for _, secret := range []string{second + "," + first, second} {
		if key, err := open(t, pool, secret).VerifierKey(t.Context()); err != nil || key != found[0] {
			t.Errorf("the key is %s, %v, want %s", key, err, found[0])
		}
	}
}

func TestCheckpointsAreKept(t *testing.T) {
	t.Parallel()
	c := open(t, pgtest.Pool(t), first)
	if latest, err := c.Latest(t.Context(), "t"); err != nil || latest.Size != 0 ||
		latest.Root != new(proof.CompactRange).Root() {
		t.Errorf("without any, the latest is %+v, %v", latest, err)
	}
	key, err := c.VerifierKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want []proof.Checkpoint
	for _, size := range []int64{7, 7, 9, 10} {
		p := proof.Checkpoint{TenantID: "t", Size: size, Root: tlog.RecordHash([]byte{byte(size)})}
		signed, err := c.Sign(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := proof.Open(signed, key); err != nil || got != p {
			t.Errorf("signed is %+v, %v, want %+v", got, err, p)
		}
		want = append(want, p)
	}
	if _, err := c.Sign(t.Context(), proof.Checkpoint{TenantID: "u", Size: 9, Root: tlog.RecordHash(nil)}); err != nil {
		t.Error(err)
	}
	if _, err := c.Sign(t.Context(), proof.Checkpoint{TenantID: "t", Size: 9, Root: tlog.RecordHash(nil)}); !errors.Is(err, checkpoints.ErrAltered) {
		t.Errorf("another root for a size: %v, want ErrAltered", err)
	}
	if all, err := c.All(t.Context(), "t"); err != nil || !slices.Equal(all, want[1:]) {
		t.Errorf("kept are %+v, %v, want %+v", all, err, want[1:])
	}
	if latest, err := c.Latest(t.Context(), "t"); err != nil || latest != want[3] {
		t.Errorf("the latest is %+v, %v", latest, err)
	}
}
