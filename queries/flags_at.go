package queries

import (
	"cmp"
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
	named := keys != nil
	rows, err := q.db.Query(ctx, `select s.key, (select v.version from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key and v.recorded <= $2
				order by v.recorded desc, v.version desc limit 1) as version,
			not exists (select from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key and v.recorded > $2) as unchanged
		from read.flag_spans s where s.tenant_id = $1 and s.since <= $2 and s.until > $2 and (not $3 or s.key = any($4)) order by s.key`, tenantID, at, named, keys)
	if err != nil {
		return nil, classify(err)
	}
	flags, err := pgx.CollectRows(rows, pgx.RowToStructByName[FlagAt])
	if err != nil || !named {
		return flags, classify(err)
	}
	all := make([]FlagAt, 0, len(keys))
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		flag := FlagAt{Key: key}
		if i, found := slices.BinarySearchFunc(flags, key, func(f FlagAt, key string) int { return cmp.Compare(f.Key, key) }); found {
			flag = flags[i]
		}
		all = append(all, flag)
	}
	return all, nil
}
