package queries

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ChangedFlag is a key whose flag changed after a time.
type ChangedFlag struct {
	Key     string
	Existed bool // a flag had the key at that time; otherwise it was created since
}

// SinceFilter selects flags by their changes after a time. If ProjectID is set, only flags count that were in the
// project at that time, or were created since and are in it now.
type SinceFilter struct {
	TenantID, ProjectID string
	At                  time.Time
	After               string // only keys after this one
}

// withFlagsThen selects the flags at the time and whether anything changed under their key.
const withFlagsThen = `with past as (
		select s.key, exists (select from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key
			and v.recorded > $3) as changed
		from read.flag_spans s where s.tenant_id = $1 and s.since <= $3 and s.until > $3 and ($2 = '' or s.project_id = $2)
			and s.key > $4)
	`

// FlagsChangedSince lists in key order at most limit keys that changed. more reports whether there are further ones.
func (q *Queries) FlagsChangedSince(
	ctx context.Context, filter SinceFilter, limit int,
) (changed []ChangedFlag, more bool, err error) {
	if err := q.WaitUntilCurrent(ctx, filter.At, "flag."); err != nil {
		return nil, false, err
	}
	rows, err := q.db.Query(ctx, withFlagsThen+`select key, true as existed from past where changed
		union all
		select f.key, false from read.flags f where f.tenant_id = $1 and ($2 = '' or f.project_id = $2) and f.key > $4
			and f.key not in (select key from past)
		order by key limit $5`, filter.TenantID, filter.ProjectID, filter.At, filter.After, limit+1)
	if err != nil {
		return nil, false, classify(err)
	}
	if changed, err = pgx.CollectRows(rows, pgx.RowToStructByName[ChangedFlag]); err != nil {
		return nil, false, classify(err)
	}
	return changed[:min(len(changed), limit)], len(changed) > limit, nil
}

// FlagsUnchangedSince counts the flags at the time that did not change since, up to key last if it is set.
func (q *Queries) FlagsUnchangedSince(ctx context.Context, filter SinceFilter, last string) (n int, err error) {
	err = q.db.QueryRow(ctx, withFlagsThen+`select count(*) from past where not changed and ($5 = '' or key <= $5)`, filter.TenantID, filter.ProjectID, filter.At, filter.After, last).
		Scan(&n)
	return n, classify(err)
}
