package queries

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// FlagAt is a flag that there was at a time.
type FlagAt struct {
	Key       string
	Version   events.Revision // that it had then; 0 for a key that no flag had
	Unchanged bool            // it is at that version still
}

// FlagsAt lists the flags that there were at a time by key: those that are named, each once, or all of the tenant where keys is nil,
// once WaitUntilCurrent has waited for "flag.".
func (q *Queries) FlagsAt(ctx context.Context, tenantID string, keys []string, at time.Time) ([]FlagAt, error) {
	flags := `(select f.key from ` + flagsAt + ` f where $2::text[] is null)`
	if keys != nil {
		flags = `unnest($2::text[])`
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	}
	rows, err := q.db.Query(ctx, `select o.key, coalesce(v.version, 0) as version, v.version is not null and not exists
			(select from read.flag_versions later where later.tenant_id = $1 and later.key = o.key and later.recorded > $3) as unchanged
		from `+flags+` o (key) left join lateral (select v.version from `+versionAt+` v cross join lateral `+spanAt+` s where s.until > $3) v on true
		order by o.key`, tenantID, keys, at)
	if err != nil {
		return nil, classify(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[FlagAt])
	return list, classify(err)
}
