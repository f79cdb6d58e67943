package queries

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// FlagUse holds when a flag was last used in the tenant's current environments.
type FlagUse struct {
	LastEvaluated  *time.Time // nil if never
	LastPrefetched *time.Time
	LastRequired   *time.Time // when it was last evaluated on behalf of another flag
	// VariedHour is the last hour in which it had several outcomes in one environment; nil if never.
	VariedHour *time.Time
}

// usesHere returns the condition that a use, by its alias, is in a current environment or in one that was not tracked
// individually.
func usesHere(alias string) string {
	return `(` + alias + `.environment_id = '' or exists (select from read.environments e where e.id = ` + alias + `.environment_id and e.tenant_id = ` + alias + `.tenant_id))`
}

const (
	useColumns = `max(u.last_evaluated) as last_evaluated, max(u.last_prefetched) as last_prefetched,
		max(u.last_required) as last_required, max(u.varied_hour) as varied_hour`
	usedColumns = `used.last_evaluated, used.last_prefetched, used.last_required, used.varied_hour`
)

var (
	// joinUse adds the use of each row f by a lookup. Use it for few rows.
	joinUse = ` cross join lateral (select ` + useColumns + ` from keep.flag_uses u
		where u.tenant_id = f.tenant_id and u.flag_key = f.key and u.life = f.created_version and ` + usesHere("u") + `) used`
	// joinUses adds the use of all rows f of tenant $1 at once.
	joinUses = ` left join (select u.flag_key, u.life, ` + useColumns + ` from keep.flag_uses u where u.tenant_id = $1
		and ` + usesHere("u") + ` group by u.flag_key, u.life) used
		on used.flag_key = f.key and used.life = f.created_version`
)

// FlagUse returns when a flag was last used. It returns ErrNotFound if the tenant has no flag with that key.
func (q *Queries) FlagUse(ctx context.Context, tenantID, key string) (FlagUse, error) {
	return one[FlagUse](ctx, q.db,
		`select `+usedColumns+` from read.flags f`+joinUse+` where f.tenant_id = $1 and f.key = $2`, tenantID, key)
}

// usedFlagKeys returns the keys of a list that is filtered or sorted by usage.
func (q *Queries) usedFlagKeys(ctx context.Context, l FlagList, r flagRows) ([]string, error) {
	rows, err := q.db.Query(
		ctx,
		"select f.key, f.status, f.permanent, f.created_at, f.updated_at, "+usedColumns+" "+r.from+joinUses+
			" "+r.where+" order by "+l.Sort.order(),
		r.args...)
	if err != nil {
		return nil, classify(err)
	}
	var flags []lifecycleInputs
	var f lifecycleInputs
	_, err = pgx.ForEachRow(
		rows,
		[]any{
			&f.Key,
			&f.Status,
			&f.Permanent,
			&f.CreatedAt,
			&f.UpdatedAt,
			&f.LastEvaluated,
			&f.LastPrefetched,
			&f.LastRequired,
			&f.VariedHour,
		},
		func() error {
			if l.Filter.takes(f, l.Stale) {
				flags = append(flags, f)
			}
			return nil
		},
	)
	if err != nil {
		return nil, classify(err)
	}
	if compare := l.Sort.byUse(); compare != nil {
		slices.SortStableFunc(flags, compare)
	}
	keys := make([]string, len(flags))
	for i, f := range flags {
		keys[i] = f.Key
	}
	return keys, nil
}

// takes reports whether the filter's usage conditions match a flag.
func (f FlagFilter) takes(flag lifecycleInputs, s Staleness) bool {
	if !f.EvaluatedBefore.IsZero() && flag.LastEvaluated != nil && !flag.LastEvaluated.Before(f.EvaluatedBefore) {
		return false
	}
	return len(f.Lifecycles) == 0 || slices.Contains(f.Lifecycles, flag.lifecycle(s))
}

// byUse returns the comparison of a sort by usage, nil for any other sort.
func (s FlagSort) byUse() func(a, b lifecycleInputs) int {
	switch s {
	case ByLastEvaluatedAt:
		return func(a, b lifecycleInputs) int { return a.evaluated().Compare(b.evaluated()) }
	case "-" + ByLastEvaluatedAt:
		return func(a, b lifecycleInputs) int { return b.evaluated().Compare(a.evaluated()) }
	case bySince:
		return func(a, b lifecycleInputs) int { return a.since().Compare(b.since()) }
	}
	return nil
}

// evaluated returns when a flag was last evaluated; the zero time if never.
func (f lifecycleInputs) evaluated() time.Time { return *cmp.Or(f.LastEvaluated, &time.Time{}) }
