package queries

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/models/modelstest"
)

// emptyStore is a store without events.
type emptyStore struct{ events.Store }

func (emptyStore) Head(context.Context) (events.Position, error) { return events.Position{}, nil }

func (emptyStore) Watermark(context.Context, time.Time) (time.Time, error) { return time.Now(), nil }

// holdsAll stands for read models that hold every change.
func holdsAll(context.Context, events.Position, []string) bool { return true }

// The list of a past time is cached by that time, and a list just past until a flag changes, because changes may still
// be recorded for it.
func TestKeptListsOfThePast(t *testing.T) {
	t.Parallel()
	pool := modelstest.Pool(t)
	q := New(pool, emptyStore{}, holdsAll, nil)
	noon := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	add := func(key string, since time.Time) {
		t.Helper()
		modelstest.Run(
			t,
			pool,
			fmt.Sprintf(
				`insert into read.flag_spans select r.* from jsonb_populate_record(null::read.flag_spans, jsonb_build_object('tenant_id', 't', 'key', '%[1]s', 'version', 1,
				'created_version', 1, 'default_version', 1, 'id', '', 'name', '', 'type', 'boolean', 'default_value', false, 'description', '', 'tags', '[]'::jsonb, 'permanent', false, 'client_side', false,
				'links', '[]'::jsonb, 'off_serves', '', 'status', 'active', 'created_at', now(), 'since', '%[2]s'::timestamptz, 'until', 'infinity')) r;
			insert into read.flag_versions values ('t', '%[1]s', 1, '%[2]s')`,
				key,
				since.Format(time.RFC3339),
			),
		)
	}
	changed := events.Position{}
	want := func(at time.Time, later time.Duration, keys string) {
		t.Helper()
		list, err := q.Flags(t.Context(),
			FlagList{TenantID: "t", EnvironmentID: "e", At: at, Stale: Staleness{Now: at.Add(later)}, Changed: changed})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, flag := range list.Rows {
			got = append(got, flag.Key)
		}
		if text := strings.Join(got, " "); text != keys || list.Total != len(got) {
			t.Errorf("%v after %v there were %q of %d flags then, want %q", later, at, text, list.Total, keys)
		}
	}
	add("a", noon)
	want(noon.Add(-1), time.Hour, "")
	want(noon, time.Hour, "a")
	want(noon.Add(time.Hour), time.Second, "a")
	add("b", noon)
	changed.Commit++
	want(noon.Add(-1), time.Hour, "")
	want(noon, time.Hour, "a")                    // it was kept
	want(noon, time.Hour+keysTTL, "a b")          // for its time
	want(noon.Add(time.Hour), time.Second, "a b") // it was kept until the change
}
