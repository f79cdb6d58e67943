package queries

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/migrations/pgtest"
	"flagledger/projections/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Without an index, each piece of a long list sorts the whole rest.
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

	q := New(pool, nil, nil, nil)
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

// A list has each row once and in order, even with large and deleted rows.
func TestListsOfLargeRowsRepeatNone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `create table large (n bigint, key text, value text);
		insert into large select n, 'k' || n, repeat('x', case n % 3 when 0 then 50000 else 7 end) from generate_series(1, 300) n where n % 4 <> 0`); err != nil {
		t.Fatal(err)
	}
	type row struct{ Key, Value string }
	var all, there []string
	for n := 1; n <= 300; n++ {
		if all = append(all, fmt.Sprint("k", n)); n%4 != 0 {
			there = append(there, fmt.Sprint("k", n))
		}
	}
	byKeys := func() (*List[row], error) {
		return listByKeys[row](t.Context(), pool, "l.key, l.value",
			"from unnest($1::text[]) with ordinality o (key, place) join large l using (key)", "o.place", all, Page{}, nil,
			[]string{})
	}
	inOrder := func() (*List[row], error) {
		return list[row](t.Context(), pool, "key, value", "from large where true", "n", Page{})
	}
	for name, open := range map[string]func() (*List[row], error){"by keys": byKeys, "in order": inOrder} {
		l, err := open()
		if err != nil {
			t.Fatal(err)
		}
		rows, err := l.All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, r.Key)
		}
		if !slices.Equal(got, there) {
			t.Errorf("a list %s has the rows %v", name, got)
		}
	}
}

// wantPlan checks that the next piece of a list is read through an index.
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
