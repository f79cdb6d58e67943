package queries

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"flagledger/migrations/pgtest"
	"flagledger/projections/models"
)

// trailOf creates a trail with n entries of ten flags and ten people, every thousandth with a reason. Several in a row
// have the same time.
func trailOf(t *testing.T, entries int) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	fill := "create schema read; set search_path = read;"
	for _, p := range models.All() {
		fill += p.Schema
	}
	fill += fmt.Sprintf(
		`insert into audit select 't', n, n * 3 + 7, n * 3 + 7, gen_random_uuid(), timestamptz '2026-01-01Z' + n / 5 * interval '1 minute',
			case n %% 7 when 0 then 'flag.updated' else 'flag.enabled' end, case n %% 50 when 0 then 'project' else 'flag' end, 'k' || n %% 10, 'K', case n %% 7 when 0 then null else 'e' || n %% 3 end,
			'{}', 'user', 'u' || n %% 11, 'r', case n %% 1000 when 0 then 'Why' else '' end, n, ''
			from generate_series(0, %d) n;
		insert into audit select 'other', n, n * 3 + 8, n * 3 + 8, gen_random_uuid(), '2026-01-01Z', 'flag.enabled', 'flag', 'k', 'K', null, '{}', 'user', 'u', 'r', '', n, ''
			from generate_series(0, 99) n;
		analyze audit; reset search_path`,
		entries-1,
	)
	if _, err := pool.Exec(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	return pool
}

// positions returns the positions of the entries of a list.
func positions(t testing.TB, l *List[AuditEntry]) (list []int64) {
	t.Helper()
	rows, err := l.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		list = append(list, row.Position)
	}
	return list
}

// pages reads a trail along its cursors.
func pages(t testing.TB, read func(AuditCursor) (*List[AuditEntry], AuditCursor, error)) (list []int64, count int) {
	t.Helper()
	for before := AuditCursor(nil); count == 0 || before != nil; count++ {
		page, next, err := read(before)
		if err != nil {
			t.Fatal(err)
		}
		list, before = append(list, positions(t, page)...), next
	}
	return list, count
}

// Pages, exports and the platform's pages contain exactly the filter's entries, each once and in order.
func TestATrailIsFiltered(t *testing.T) {
	t.Parallel()
	const entries = 1500
	q := New(trailOf(t, entries), nil, nil, nil)
	rapid.Check(t, func(r *rapid.T) {
		pick := func(label string, list ...string) string {
			return rapid.SampledFrom(append(list, "", "")).Draw(r, label)
		}
		at := func(label string) (at time.Time) {
			if rapid.Bool().Draw(r, "has "+label) {
				at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).
					Add(time.Duration(rapid.IntRange(-60, 310*60).Draw(r, label)) * time.Second)
			}
			return at
		}
		filter := AuditFilter{
			Action:       pick("action", "flag.updated", "flag.enabled"),
			UserID:       pick("user", "u3", "nobody"),
			ResourceType: pick("type", "flag", "project"),
			ResourceID:   pick("resource", "k0", "k1"),
			Environment:  pick("environment", "e1"),
			Search:       pick("search", "why", "U3", "k"),
			From:         at("from"),
			To:           at("to"),
		}
		var want []int64
		for n := range int64(entries) {
			action, kind, environment, reason := "flag.enabled", "flag", fmt.Sprint("e", n%3), ""
			if n%7 == 0 {
				action, environment = "flag.updated", ""
			}
			if n%50 == 0 {
				kind = "project"
			}
			if n%1000 == 0 {
				reason = "why"
			}
			id, user, recorded := fmt.Sprint("k", n%10), fmt.Sprint("u", n%11), time.Date(2026, 1, 1, 0, int(n/5), 0, 0, time.UTC)
			is := func(wanted, value string) bool { return cmp.Or(wanted, value) == value }
			if is(filter.Action, action) && is(filter.UserID, user) && is(filter.ResourceType, kind) &&
				is(filter.ResourceID, id) &&
				is(filter.Environment, environment) &&
				(filter.From.IsZero() || !recorded.Before(filter.From)) &&
				(filter.To.IsZero() || recorded.Before(filter.To)) &&
				strings.Contains(strings.Join([]string{id, "k", user, reason}, " "), strings.ToLower(filter.Search)) {
				want = append(want, n)
			}
		}
		after := rapid.Int64Range(-1, entries).Draw(r, "after")
		export, err := q.ExportAudit(t.Context(), "t", filter, after)
		if err != nil {
			r.Fatal(err)
		}
		var exported []int64
		for export.More() {
			rows, err := export.Next(t.Context())
			if err != nil {
				r.Fatal(err)
			}
			for _, row := range rows {
				exported = append(exported, row.Position)
			}
		}
		rest := slices.DeleteFunc(slices.Clone(want), func(n int64) bool { return n <= after })
		if !slices.Equal(exported, rest) {
			r.Fatalf("the export has %v, want %v", exported, rest)
		}
		slices.Reverse(want)
		limit := rapid.IntRange(10, 1000).Draw(r, "limit")
		got, _ := pages(t, func(before AuditCursor) (*List[AuditEntry], AuditCursor, error) {
			return q.Audit(t.Context(), "t", filter, before, limit)
		})
		if !slices.Equal(got, want) {
			r.Fatalf("the pages have %v, want %v", got, want)
		}
		if filter.UserID != "u3" { // the other tenant does not have them
			return
		}
		got, _ = pages(t, func(before AuditCursor) (*List[AuditEntry], AuditCursor, error) {
			return q.PlatformAudit(t.Context(), filter, before, limit)
		})
		if !slices.Equal(got, want) {
			r.Fatalf("the platform's pages have %v, want %v", got, want)
		}
	})
}

// A page reads a limited number of rows. The next one continues at its end.
func TestAPageEndsWhereItFindsNothing(t *testing.T) {
	t.Parallel()
	q := New(trailOf(t, maxExamined+1500), nil, nil, nil)
	for _, limit := range []int{5, 1000} {
		for _, filter := range []AuditFilter{{Search: "why"}, {Search: "why", ResourceType: "flag"}} {
			for name, read := range map[string]func(AuditCursor) (*List[AuditEntry], AuditCursor, error){
				"tenant": func(before AuditCursor) (*List[AuditEntry], AuditCursor, error) {
					return q.Audit(t.Context(), "t", filter, before, limit)
				},
				"platform": func(before AuditCursor) (*List[AuditEntry], AuditCursor, error) {
					return q.PlatformAudit(t.Context(), filter, before, limit)
				},
			} {
				got, count := pages(t, read)
				var want []int64
				for n := int64(maxExamined + 1000); n >= 0 && filter.ResourceType == ""; n -= 1000 {
					want = append(want, n)
				}
				if !slices.Equal(got, want) || count != 2 {
					t.Errorf("of pages of %d, the %s has %v on %d, want %v on 2", limit, name, got, count, want)
				}
			}
		}
	}
}

// The first entry of a time is found from every entry, including indexed ones and their neighbours.
func TestFirstAuditEntryOfATime(t *testing.T) {
	t.Parallel()
	const entries = 1500
	q := New(trailOf(t, entries), nil, nil, nil)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := int64(0); n <= entries; n += 5 { // entries n to n+4 have one time
		at := begin.Add(time.Duration(n/5) * time.Minute)
		for _, when := range []time.Time{at, at.Add(-time.Second)} {
			if got, err := q.auditNumber(t.Context(), "t", when, entries); err != nil || got != n {
				t.Errorf("the first entry from %v on is %d (%v), want %d", when, got, err, n)
			}
		}
	}
}

// Each name is found by an index, whatever the number of people.
func TestNamesOfATrailAreFoundByIndexes(t *testing.T) {
	pool := trailOf(t, 10)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local enable_seqscan = off; set local enable_bitmapscan = off`); err != nil {
			return err
		}
		rows, err := tx.Query(
			t.Context(),
			`explain select `+auditColumns+` from read.audit a`+actorJoins+` where a.tenant_id = 't' and a.n = any(array[1, 2, 3])`,
		)
		if err != nil {
			return err
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, line := range plan {
			if strings.Contains(line, "Seq Scan") {
				t.Errorf("the plan reads a whole table: %s", strings.Join(plan, "\n"))
				break
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
