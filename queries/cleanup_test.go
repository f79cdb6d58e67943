package queries

import (
	"slices"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/models/modelstest"
)

// A settled flag's outcome is the one of the environments with evaluations within the stale time. It is required in
// current environments alone.
func TestCleanupIgnoresStaleOutcomes(t *testing.T) {
	t.Parallel()
	pool := modelstest.Pool(t)
	q := New(pool, emptyStore{}, holdsAll, nil)
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	modelstest.Run(t, pool, modelstest.NewFlags(`from (values ('t', 'settled', 1), ('t', 'differs', 1)) f (tenant, key, life)`)+`
		update read.flags set created_at = '2025-01-01Z', updated_at = '2025-01-01Z';
		insert into read.environments select r.* from (values ('e1'), ('e2'), ('e3')) e (id), jsonb_populate_record(null::read.environments,
			jsonb_build_object('tenant_id', 't', 'id', e.id, 'name', e.id, 'color', '', 'version', 1, 'place', 0, 'created_at', now())) r;
		insert into keep.flag_outcomes select 't', key, 1, outcome, null, null::text, to_json(outcome)
			from (values ('settled'), ('differs')) f (key), (values ('old'), ('new'), ('other')) o (outcome);
		insert into keep.flag_uses values
			('t', 'settled', 1, 'e1', '2026-03-14T11:00:00Z', null, 'new', '2026-03-14T11:00:00Z', null),
			('t', 'settled', 1, 'e2', '2026-01-01T11:00:00Z', null, 'old', '2026-01-01T11:00:00Z', null),
			('t', 'differs', 1, 'e1', '2026-03-14T11:00:00Z', null, 'new', '2026-03-14T11:00:00Z', null),
			('t', 'differs', 1, 'e3', '2026-03-14T10:00:00Z', null, 'other', '2026-03-14T10:00:00Z', null);
		update read.flags set prerequisites = '{"e1":[{"flagKey":"settled","off":true}],"e2":[{"flagKey":"settled"}],
			"gone":[{"flagKey":"differs"}]}' where key = 'differs'`)
	list, err := q.Cleanup(t.Context(), "t", Staleness{Now: now, After: 30 * 24 * time.Hour}, events.Position{}, Page{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]string{}
	for _, flag := range list.Rows {
		if want := map[string][]string{"settled": {"differs"}}[flag.Key]; !slices.Equal(flag.RequiredBy, want) {
			t.Errorf("%s is required by %q, want %q", flag.Key, flag.RequiredBy, want)
		}
		outcomes[flag.Key] = string(flag.Value)
	}
	if len(outcomes) != 2 || outcomes["settled"] != `"new"` || outcomes["differs"] != "" {
		t.Errorf("the flags can be replaced by %v", outcomes)
	}
}
