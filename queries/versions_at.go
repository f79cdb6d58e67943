package queries

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// VersionThen is the version of a flag at a time.
type VersionThen struct {
	Key       string
	Version   events.Revision // 0 if no flag had the key
	Unchanged bool            // the flag still has that version
}

// VersionsAt lists the versions of flags at a time by key: of the given keys, or of all flags if keys is nil. Call
// WaitUntilCurrent for "flag." first.
func (q *Queries) VersionsAt(ctx context.Context, tenantID string, keys []string, at time.Time) ([]VersionThen, error) {
	flags := `(select f.key from ` + flagsAt + ` f where $2::text[] is null)`
	if keys != nil {
		flags = `unnest($2::text[])`
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	}
	rows, err := q.db.Query(ctx, `select o.key, coalesce(v.version, 0) as version, v.version is not null and not exists
			(select from read.flag_versions later where later.tenant_id = $1 and later.key = o.key
				and later.recorded > $3) as unchanged
		from `+flags+` o (key) left join lateral (select v.version from `+versionAt+` v cross join lateral `+spanAt+` s
			where s.until > $3) v on true
		order by o.key`, tenantID, keys, at)
	if err != nil {
		return nil, classify(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[VersionThen])
	return list, classify(err)
}
