package queries

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/events"
	"flagledger/events/proof"
	"flagledger/projections"
	"flagledger/projections/models"
)

// consume applies an event to the read model of the trail.
func consume(t *testing.T, pool *pgxpool.Pool, stream string) (leaf tlog.Hash) {
	t.Helper()
	id := uuid.New()
	stored, err := events.Encode(events.Event{ID: id, Fact: events.TenantDeleted{}})
	if err != nil {
		t.Fatal(err)
	}
	e := events.Recorded{
		Event:    events.Event{ID: id, Fact: events.TenantDeleted{}},
		Stream:   stream,
		Revision: 1,
		At:       time.Now(),
		Name:     stored.Name,
		Stored:   stored,
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local search_path = read`); err != nil {
			return err
		}
		trail, err := models.ByName([]string{"audit"})
		if err != nil {
			return err
		}
		model := trail[0].New()
		use := func(run func(*pgx.Conn) error) error { return run(tx.Conn()) }
		if err := model.Load(t.Context(), use, []events.Recorded{e}); err != nil {
			return err
		}
		var batch projections.Batch
		if err := model.Apply(&batch, e); err != nil {
			return err
		}
		return batch.Run(t.Context(), tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := events.LeafHash(e)
	if err != nil {
		t.Fatal(err)
	}
	return tlog.Hash(hash)
}

// The roots and proofs of a large tree are the same with and without stored nodes.
func TestATreeIsReadFromItsNodes(t *testing.T) {
	t.Parallel()
	const entries = 1<<16 + 600
	pool := trailOf(t, 0)
	// Without the indexes that trees do not use, the insertion takes a fraction of the time.
	_, err := pool.Exec(t.Context(), `do $$ declare other text; begin
		for other in select indexrelid::regclass from pg_index where indrelid = 'read.audit'::regclass and not indisprimary loop execute 'drop index ' || other; end loop; end $$`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.Exec(
		t.Context(),
		fmt.Sprintf(
			`insert into read.audit select 't', n, n + 1, n + 2, gen_random_uuid(), '2026-01-01Z', 'flag.enabled', 'flag', 'k', 'K', null,
		'{}', 'user', 'u', 'r', '', n, sha256(n::text::bytea) from generate_series(0, %d) n; analyze read.audit`,
			entries-1,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	var tree proof.CompactRange
	roots := []tlog.Hash{tree.Root()}
	add := func(leaf tlog.Hash) {
		tree.Add(leaf)
		roots = append(roots, tree.Root())
	}
	for n := range entries {
		add(sha256.Sum256(fmt.Append(nil, n)))
	}
	q := New(pool, nil, nil, nil)
	check := func(wantSize int64) {
		t.Helper()
		read, err := q.AuditTree(t.Context(), "t")
		if err != nil || read.Size != wantSize {
			t.Fatalf("the tree has %d entries, want %d: %v", read.Size, wantSize, err)
		}
		for _, size := range []int64{0, 1, 2, 255, 256, 257, 513, 1 << 15, 1<<16 - 1, 1 << 16, 1<<16 + 1, wantSize} {
			if root, err := read.Root(t.Context(), size); err != nil || root != roots[size] {
				t.Errorf("the root of %d entries is %v, want %v: %v", size, root, roots[size], err)
			}
		}
		for _, n := range []int64{0, 300, 1<<16 - 1, entries - 1} {
			hashes, err := read.ProveEntry(t.Context(), wantSize, n)
			if err == nil {
				err = tlog.CheckRecord(hashes, wantSize, roots[wantSize], n, sha256.Sum256(fmt.Append(nil, n)))
			}
			if err != nil {
				t.Errorf("entry %d: %v", n, err)
			}
		}
		hashes, err := read.ProveGrowth(t.Context(), wantSize, 1<<15+7)
		if err == nil {
			err = tlog.CheckTree(hashes, wantSize, roots[wantSize], 1<<15+7, roots[1<<15+7])
		}
		if err != nil {
			t.Error(err)
		}
	}
	check(entries)
	add(consume(t, pool, events.TenantStream("t")))
	check(entries + 1)
	var nodes, upper int
	if err := pool.QueryRow(t.Context(), `select count(*) filter (where level = 8), count(*) filter (where level = 16) from read.audit_nodes`).
		Scan(&nodes, &upper); err != nil {
		t.Fatal(err)
	}
	if nodes != entries/256 || upper != 1 {
		t.Errorf("there are %d and %d nodes, want %d and 1", nodes, upper, entries/256)
	}
	// They are the ones that are read.
	if _, err := pool.Exec(t.Context(), `update read.audit set leaf = '' where n < 65536`); err != nil {
		t.Fatal(err)
	}
	if read, err := q.AuditTree(t.Context(), "t"); err != nil {
		t.Fatal(err)
	} else if root, err := read.Root(t.Context(), read.Size); err != nil || root != roots[read.Size] {
		t.Errorf("from nodes, the root is %v, want %v: %v", root, roots[read.Size], err)
	}
}

func TestNoTreeIsReadWhileFactsAreParked(t *testing.T) {
	t.Parallel()
	pool := trailOf(t, 10)
	q := New(pool, nil, nil, nil)
	if _, err := q.AuditTree(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	park := func(building bool) error {
		_, err := pool.Exec(
			t.Context(),
			`insert into keep.parked (projection, building, stream, revision, commit, prepare, error)
			values ('audit', $1, 'tenant-t', 1, 1, 1, '')`,
			building,
		)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.AuditTree(t.Context(), "t")
		return err
	}
	if err := park(true); err != nil {
		t.Errorf("a stream that a rebuild has parked blocks proofs: %v", err)
	}
	if err := park(false); err == nil {
		t.Error("a tree without parked facts is taken for whole")
	}
}
