package queries

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// FlagUse is when a flag was used last, in environments that there are.
type FlagUse struct {
	LastEvaluated  *time.Time // nil where it never was
	LastPrefetched *time.Time
	VariedHour     *time.Time // the last hour in which it had more than one outcome in an environment; nil where it never had
}

// Lifecycle is where a flag is between its creation and its end.
type Lifecycle string

// The lifecycles, of which a flag has the first that holds.
const (
	Archived Lifecycle = "archived" // by its status
	Fresh    Lifecycle = "new"      // never evaluated, and created within the stale time
	Unused   Lifecycle = "unused"   // neither evaluated nor prefetched for the stale time
	Settled  Lifecycle = "settled"  // unchanged for the stale time, and evaluated in it with one outcome in each environment
	InUse    Lifecycle = "live"     // any other
)

// Staleness is when a flag counts as stale: what was longer ago than After.
type Staleness struct {
	Now   time.Time
	After time.Duration
}

func (s Staleness) start() time.Time { return s.Now.Add(-s.After) }

// lifecycleInputs is what a flag's lifecycle follows from.
type lifecycleInputs struct {
	FlagUse
	Status               string
	Permanent            bool
	CreatedAt, UpdatedAt time.Time
}

func (f lifecycleInputs) lifecycle(s Staleness) Lifecycle {
	start := s.start()
	within := func(t *time.Time) bool { return t != nil && t.After(start) }
	switch {
	case f.Status == string(events.ArchivedFlag):
		return Archived
	case f.LastEvaluated == nil && f.CreatedAt.After(start):
		return Fresh
	case f.Permanent:
		return InUse
	case !within(f.LastEvaluated) && !within(f.LastPrefetched):
		return Unused
	case within(f.LastEvaluated) && !f.UpdatedAt.After(start) && (f.VariedHour == nil || f.VariedHour.Before(start.UTC().Truncate(time.Hour))):
		return Settled
	default:
		return InUse
	}
}

// since is when a flag was evaluated, prefetched or changed last.
func (f lifecycleInputs) since() time.Time {
	since := f.UpdatedAt
	for _, t := range []*time.Time{f.LastEvaluated, f.LastPrefetched} {
		if t != nil && t.After(since) {
			since = *t
		}
	}
	return since
}

func (f Flag) inputs() lifecycleInputs {
	return lifecycleInputs{f.FlagUse, f.Status, f.Permanent, f.CreatedAt, f.UpdatedAt}
}

// Lifecycle is the lifecycle of the flag.
func (f Flag) Lifecycle(s Staleness) Lifecycle { return f.inputs().lifecycle(s) }

const (
	useColumns = `max(u.last_evaluated) as last_evaluated, max(u.last_prefetched) as last_prefetched, max(u.varied_hour) as varied_hour`
	// usesHere are the uses u of a tenant's flags in environments that there are, or that were not told apart.
	usesHere = `(u.environment_id = '' or exists (select from read.environments e where e.id = u.environment_id and e.tenant_id = u.tenant_id))`
	// joinUse adds the use of each row f. It is for few rows: each is looked up.
	joinUse = ` cross join lateral (select ` + useColumns + ` from keep.flag_uses u
		where u.tenant_id = f.tenant_id and u.flag_key = f.key and u.life = f.created_version and ` + usesHere + `) used`
	// joinUses adds the use of all rows f of tenant $1.
	joinUses = ` left join (select u.flag_key, u.life, ` + useColumns + ` from keep.flag_uses u where u.tenant_id = $1 and ` + usesHere + ` group by u.flag_key, u.life) used
		on used.flag_key = f.key and used.life = f.created_version`
	usedColumns = `used.last_evaluated, used.last_prefetched, used.varied_hour`
)

// FlagUse reads when a flag was used last. It returns ErrNotFound where the tenant has none of that key.
func (q *Queries) FlagUse(ctx context.Context, tenantID, key string) (FlagUse, error) {
	return one[FlagUse](ctx, q.db, `select `+usedColumns+` from read.flags f`+joinUse+` where f.tenant_id = $1 and f.key = $2`, tenantID, key)
}

// listedUse is what a list needs to know of a flag that is chosen or put in order by its use.
type listedUse struct {
	Key string
	lifecycleInputs
}

// usedFlagKeys returns the keys of a list that depends on the use of flags.
func (q *Queries) usedFlagKeys(ctx context.Context, l FlagList, r flagRows) (keys flagKeys, err error) {
	rows, err := q.db.Query(ctx, "select f.key, f.status, f.permanent, f.created_at, f.updated_at, "+usedColumns+" "+r.from+joinUses+" "+r.where+" order by "+l.Sort.order(), r.args...)
	if err != nil {
		return keys, classify(err)
	}
	var flags []listedUse
	var f listedUse
	_, err = pgx.ForEachRow(rows, []any{&f.Key, &f.Status, &f.Permanent, &f.CreatedAt, &f.UpdatedAt, &f.LastEvaluated, &f.LastPrefetched, &f.VariedHour}, func() error {
		if l.Filter.takes(f.lifecycleInputs, l.Stale) {
			flags = append(flags, f)
		}
		return nil
	})
	if err != nil {
		return keys, classify(err)
	}
	if compare := l.Sort.byUse(); compare != nil {
		slices.SortStableFunc(flags, compare)
	}
	var text strings.Builder
	for _, f := range flags {
		keys.add(&text, f.Key)
	}
	keys.text = text.String()
	return keys, nil
}

// takes reports whether a filter takes a flag, as far as its use decides that.
func (f FlagFilter) takes(flag lifecycleInputs, s Staleness) bool {
	if !f.EvaluatedBefore.IsZero() && flag.LastEvaluated != nil && !flag.LastEvaluated.Before(f.EvaluatedBefore) {
		return false
	}
	return len(f.Lifecycles) == 0 || slices.Contains(f.Lifecycles, flag.lifecycle(s))
}

// byUse compares flags in a sort that depends on their use; nil for any other.
func (s FlagSort) byUse() func(a, b listedUse) int {
	switch s {
	case ByLastEvaluatedAt:
		return func(a, b listedUse) int { return a.evaluated().Compare(b.evaluated()) }
	case "-" + ByLastEvaluatedAt:
		return func(a, b listedUse) int { return b.evaluated().Compare(a.evaluated()) }
	case bySince:
		return func(a, b listedUse) int { return a.since().Compare(b.since()) }
	}
	return nil
}

// evaluated is when a flag was evaluated last; one that never was counts as the earliest.
func (f listedUse) evaluated() time.Time { return *cmp.Or(f.LastEvaluated, &time.Time{}) }
