package queries

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/migrations/pgtest"
	"flagledger/projections/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Without an index each piece of a long list sorts all that is left of it.
func TestThePlatformsListsAreReadAlongAnIndex(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	fill := "create schema read; set search_path = read;"
	for _, p := range models.All() {
		fill += p.Schema
	}
	fill += `insert into users select 'u' || n, '', true, false, now() - n * interval '1 s' from generate_series(1, 50000) n;
		insert into tenants select 't' || n, 'Acme', false, '{}', 'u' || n, now() - n * interval '1 s', null from generate_series(1, 50000) n;
		analyze users, tenants; reset search_path`
	if _, err := pool.Exec(t.Context(), fill); err != nil {
		t.Fatal(err)
	}

	q := New(pool, nil, nil)
	users, err := q.PlatformUsers(t.Context(), "", Page{})
	if err != nil {
		t.Fatal(err)
	}
	wantPlan(t, q, users, "users_created_at_id_idx")
	tenants, err := q.PlatformTenants(t.Context(), "", Page{})
	if err != nil {
		t.Fatal(err)
	}
	wantPlan(t, q, tenants, "tenants_created_at_id_idx")
}

// wantPlan checks that the next piece of a list is read along an index.
func wantPlan[T any](t *testing.T, q *Queries, l *List[T], index string) {
	t.Helper()
	query, args := l.query(maxBatch, 0)
	rows, err := q.db.Query(t.Context(), "explain "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "\n"); !strings.Contains(text, index) {
		t.Errorf("%s is not used:\n%s", index, text)
	}
}
