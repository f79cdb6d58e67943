package queries

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ChangedFlag is a key under which something changed after a time.
type ChangedFlag struct {
	Key     string
	Existed bool // a flag had the key then; else one was created since
}

// SinceFilter chooses flags by what became of them after a time. Where ProjectID is not empty, only flags that were in
// that project then, or that were created since and are in it, count.
type SinceFilter struct {
	TenantID, ProjectID string
	At                  time.Time
	After               string // only keys after this one
}

// withFlagsThen begins a query with the flags of then, and whether anything changed under their key.
const withFlagsThen = `with past as (
		select s.key, exists (select from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key
			and v.recorded > $3) as changed
		from read.flag_spans s where s.tenant_id = $1 and s.since <= $3 and s.until > $3 and ($2 = '' or s.project_id = $2)
			and s.key > $4)
	`

// FlagsChangedSince lists at most limit keys, in their order, under which something changed. more reports whether there
// are further ones.
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

// FlagsUnchangedSince counts the flags of then, up to a key if last is not empty, under whose key nothing changed.
func (q *Queries) FlagsUnchangedSince(ctx context.Context, filter SinceFilter, last string) (n int, err error) {
	err = q.db.QueryRow(ctx, withFlagsThen+`select count(*) from past where not changed and ($5 = '' or key <= $5)`, filter.TenantID, filter.ProjectID, filter.At, filter.After, last).
		Scan(&n)
	return n, classify(err)
}
