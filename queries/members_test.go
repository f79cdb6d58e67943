package queries

import (
	"testing"
	"time"

	"flagledger/projections/models/modelstest"
)

// A member is listed from the exact time of their first fact until just before the last one's.
func TestMembersAtTheirFirstAndLastTime(t *testing.T) {
	t.Parallel()
	pool := modelstest.Pool(t)
	q := New(pool, emptyStore{}, holdsAll, nil)
	joined := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	removed := joined.Add(time.Hour)
	modelstest.Run(
		t,
		pool,
		`insert into read.member_spans (tenant_id, user_id, role, pending, created_at, position, version, since, until)
		values ('t', 'u', 'viewer', false, now(), 1, 1, '2026-03-14T12:00:00Z', '2026-03-14T13:00:00Z')`,
	)
	for _, c := range []struct {
		at   time.Time
		want int
	}{{joined.Add(-time.Microsecond), 0}, {joined, 1}, {removed.Add(-time.Microsecond), 1}, {removed, 0}} {
		members, err := q.Members(t.Context(), "t", c.at, Page{})
		if err != nil {
			t.Fatal(err)
		}
		if len(members.Rows) != c.want {
			t.Errorf("at %v there are %d members, want %d", c.at, len(members.Rows), c.want)
		}
	}
}
