package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// Flag is a row of a list of flags, as it stands in one environment.
type Flag struct {
	ID           string
	Key          string
	Name         string
	Type         string
	Enabled      bool
	DefaultValue json.RawMessage
	Description  string
	Tags         []string
	ProjectID    *string
	Status       string
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// FlagFilter narrows a list of flags. Fields that are empty do not.
type FlagFilter struct {
	ProjectID string
	Type      string
	Status    string
	Enabled   *bool
	Tag       string
	Search    string // part of the key or the name, in either case
}

const (
	// $1 is the tenant, $2 the environment's id.
	flagEnabled = `exists (select from read.flag_environments e where e.tenant_id = f.tenant_id and e.key = f.key and e.environment_id = $2)`
	// flagsAt are rows with all that flagColumns names, at the time $3.
	flagsAt = `(select s.tenant_id, s.key, s.id, s.name, s.type, s.description, s.tags, s.project_id, s.status, s.created_at,
			(select d.default_value from read.flag_spans d where d.tenant_id = s.tenant_id and d.key = s.key and d.version = s.default_version) as default_value,
			(select v.version from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key and v.recorded <= $3
				order by v.recorded desc, v.version desc limit 1) as version,
			(select v.updated_at from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key and v.recorded <= $3
				order by v.recorded desc, v.version desc limit 1) as updated_at,
			coalesce((select v.enabled from read.flag_versions v where v.tenant_id = s.tenant_id and v.key = s.key and v.environment_id = $2 and v.recorded <= $3
				and v.version > s.created_version order by v.recorded desc, v.version desc limit 1), false) as enabled
		from read.flag_spans s where s.tenant_id = $1 and s.since <= $3 and s.until > $3)`
)

// flagColumns are read from rows f. enabled is what tells whether the flag is on.
func flagColumns(enabled string) string {
	return `f.id, f.key, f.name, f.type, ` + enabled + ` as enabled, f.default_value, f.description, f.tags, f.project_id, f.status, f.version, f.created_at, f.updated_at`
}

// Flags lists a tenant's flags at a time, by key.
func (q *Queries) Flags(ctx context.Context, tenantID, environmentID string, at time.Time, filter FlagFilter, page Page) (*List[Flag], error) {
	from, enabled, args := `from read.flags f where f.tenant_id = $1 and $2 <> ''`, flagEnabled, []any{tenantID, environmentID}
	if !at.IsZero() {
		if err := q.WaitUntilCurrent(ctx, "flag."); err != nil {
			return nil, err
		}
		from, enabled, args = `from `+flagsAt+` f where $2 <> ''`, `f.enabled`, append(args, at)
	}
	where := func(condition string, value any) {
		args = append(args, value)
		from += " and " + fmt.Sprintf(condition, len(args))
	}
	if filter.ProjectID != "" {
		where("f.project_id = $%d", filter.ProjectID)
	}
	if filter.Type != "" {
		where("f.type = $%d", filter.Type)
	}
	if filter.Status != "" {
		where("f.status = $%d", filter.Status)
	}
	if filter.Enabled != nil {
		where(enabled+" = $%d", *filter.Enabled)
	}
	if filter.Tag != "" {
		where("$%d = any(f.tags)", filter.Tag)
	}
	if filter.Search != "" {
		where("(strpos(lower(f.key), lower($%[1]d)) > 0 or strpos(lower(f.name), lower($%[1]d)) > 0)", filter.Search)
	}
	return list[Flag](ctx, q.db, flagColumns(enabled), from, `f.key`, page, args...)
}

// Flag reads one flag with its variations in the order of their creation, both at the same version. It returns ErrNotFound where the tenant has
// none of that key.
func (q *Queries) Flag(ctx context.Context, tenantID, environmentID, key string) (flag Flag, variations []events.Variation, err error) {
	whole := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, q.db, whole, func(tx pgx.Tx) error {
		if flag, err = one[Flag](ctx, tx, `select `+flagColumns(flagEnabled)+` from read.flags f where f.tenant_id = $1 and f.key = $3`, tenantID, environmentID, key); err != nil {
			return err
		}
		found, err := flagVariations(ctx, tx, tenantID, key, Page{})
		if err != nil {
			return err
		}
		variations, err = found.All(ctx)
		return err
	})
	return flag, variations, classify(err)
}

func flagVariations(ctx context.Context, db reader, tenantID, key string, page Page) (*List[events.Variation], error) {
	return list[events.Variation](ctx, db, `id, name, value, description, weight`,
		`from read.flag_variations where tenant_id = $1 and key = $2`, `added, ordinal`, page, tenantID, key)
}

// Variations lists a flag's variations in the order of their creation. It returns ErrNotFound where the tenant has no flag of that key.
func (q *Queries) Variations(ctx context.Context, tenantID, key string, page Page) (*List[events.Variation], error) {
	variations, err := flagVariations(ctx, q.db, tenantID, key, page)
	if err != nil || variations.Total > 0 {
		return variations, err
	}
	return variations, q.found(ctx, "read.flags", tenantID, key)
}
