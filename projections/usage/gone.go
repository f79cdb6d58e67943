package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/migrations/database"
)

// FlagIndex tells which tenants, environments and flags exist.
type FlagIndex interface {
	// Complete reports whether the index has held all that there was at some time since its start.
	Complete() bool
	// EnvironmentIDs lists a tenant's environments, and returns false if there is no such tenant.
	EnvironmentIDs(tenantID string) ([]string, bool)
	// FlagLife returns the life of a flag, and false if there is no such flag.
	FlagLife(tenantID, key string) (uint64, bool)
}

// A node may lag behind others: recent usage stays.
const (
	tenantGrace = 3 * time.Hour // from the beginning of the hour
	flagGrace   = 24 * time.Hour
)

var tablesOfTenants = []string{
	"flag_hours",
	"flag_days",
	"flag_outcomes",
	"flag_uses",
	"tenant_hours",
	"tenant_days",
	"use_days",
	"evaluations",
	"evaluation_restarts",
	"usage_reports",
}

// ForgetTenant implements commands.TenantData.
func (m *Meter) ForgetTenant(ctx context.Context, tenantID string) error {
	for _, table := range tablesOfTenants {
		if err := m.deleteRows(ctx, table, `tenant_id = $1`, tenantID); err != nil {
			return database.Classify(err)
		}
	}
	return nil
}

// RemoveGone removes the usage of deleted tenants, environments and flags, also what a node wrote late. While the index
// is not complete, it removes nothing. It goes on with other tenants if one fails, and returns the errors of all.
func (m *Meter) RemoveGone(ctx context.Context, existing FlagIndex) error {
	if !existing.Complete() {
		return nil
	}
	tenants, err := m.distinctTenants(ctx, tablesOfTenants...)
	if err != nil {
		return err
	}
	var errs []error
	for _, tenantID := range tenants {
		if err := m.removeGoneOf(ctx, existing, tenantID); err != nil {
			errs = append(errs, fmt.Errorf("the usage of the tenant %s: %w", tenantID, err))
		}
	}
	return errors.Join(errs...)
}

func (m *Meter) removeGoneOf(ctx context.Context, existing FlagIndex, tenantID string) error {
	environments, ok := existing.EnvironmentIDs(tenantID)
	if !ok {
		var late bool
		err := m.db.QueryRow(ctx, `select exists (select from keep.tenant_hours where tenant_id = $1 and hour > $2)`,
			tenantID, m.now().Add(-tenantGrace)).Scan(&late)
		if late || err != nil {
			return err
		}
		return m.ForgetTenant(ctx, tenantID)
	}
	rows, err := m.db.Query(ctx, `select flag_key, life, environment_id from keep.flag_uses where tenant_id = $1
		and greatest(last_evaluated, last_prefetched, last_required) < $2`, tenantID, m.now().Add(-flagGrace))
	if err != nil {
		return err
	}
	var keys, in []string
	var lives []int64
	var key, environmentID string
	var life int64
	_, err = pgx.ForEachRow(rows, []any{&key, &life, &environmentID}, func() error {
		now, ok := existing.FlagLife(tenantID, key)
		if !ok || now > uint64(life) || environmentID != "" && !slices.Contains(environments, environmentID) {
			keys, lives, in = append(keys, key), append(lives, life), append(in, environmentID)
		}
		return nil
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	removeFrom := func(table, column string) error {
		times, err := m.distinctTimes(ctx, table, column, tenantID)
		for i := 0; i < len(times) && err == nil; i++ { // the index begins with them
			_, err = m.db.Exec(ctx, fmt.Sprintf(deleteLives, table)+` and t.`+column+` = $5`, tenantID, keys, lives, in, times[i])
		}
		return err
	}
	if err := removeFrom("flag_hours", "hour"); err != nil {
		return err
	}
	// A day that is being summed may still have hours of before they went: it is written first.
	if _, err := m.db.Exec(ctx, `select pg_advisory_xact_lock_shared($1)`, int64(removalLock)); err != nil {
		return err
	}
	if err := removeFrom("flag_days", "day"); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(fmt.Sprintf(deleteLives, "flag_uses"), tenantID, keys, lives, in)
	b.Queue(`delete from keep.flag_outcomes as o using unnest($2::text[], $3::bigint[]) as gone (k, l)
		where o.tenant_id = $1 and o.flag_key = gone.k and o.life = gone.l
		and not exists (select from keep.flag_uses u where u.tenant_id = $1 and u.flag_key = gone.k and u.life = gone.l)`,
		tenantID, keys, lives)
	return m.db.SendBatch(ctx, b).Close()
}

// deleteLives deletes from a table what lives of flags have counted in environments.
const deleteLives = `delete from keep.%s as t using unnest($2::text[], $3::bigint[], $4::text[]) as gone (k, l, e)
	where t.tenant_id = $1 and t.flag_key = gone.k and t.life = gone.l and t.environment_id = gone.e`

// deletedAtOnce is how many rows one statement deletes: a tenant has more of them than may be deleted within the time
// of a statement.
const deletedAtOnce = 20_000

// deleteRows deletes the rows of a table that meet a condition, with as many statements as that takes. If it fails,
// what it has deleted stays deleted.
func (m *Meter) deleteRows(ctx context.Context, table, condition string, arguments ...any) error {
	statement := fmt.Sprintf(`with gone as (
			delete from keep.%[1]s where ctid = any(array(select ctid from keep.%[1]s where %[2]s
				limit %[3]d for update skip locked)) returning 1
		) select (select count(*) from gone), exists (select from keep.%[1]s where %[2]s)`, table, condition, deletedAtOnce)
	for {
		var deleted int
		var found bool // before
		if err := m.db.QueryRow(ctx, statement, arguments...).Scan(&deleted, &found); err != nil || !found {
			return err
		}
		if deleted > 0 {
			continue
		}
		// Others hold all that are left: they may be deleting them, or about to fail.
		_, err := m.db.Exec(ctx, fmt.Sprintf(`select from keep.%s where %s limit 1 for update`, table, condition),
			arguments...)
		if err != nil {
			return err
		}
	}
}

// distinctTenants lists the tenants that have rows in tables. The index finds each.
func (m *Meter) distinctTenants(ctx context.Context, tables ...string) (all []string, err error) {
	for _, table := range tables {
		tenants, err := collect[string](ctx, m.db, `with recursive t as (
				(select tenant_id from keep.`+table+` order by tenant_id limit 1)
				union all
				select (select n.tenant_id from keep.`+table+` n where n.tenant_id > t.tenant_id order by n.tenant_id limit 1)
					from t where t.tenant_id is not null
			) select tenant_id from t where tenant_id is not null`)
		if err != nil {
			return nil, err
		}
		all = append(all, tenants...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// distinctTimes lists the hours or days of a tenant's rows. The index finds each.
func (m *Meter) distinctTimes(ctx context.Context, table, column, tenantID string) ([]time.Time, error) {
	return collect[time.Time](ctx, m.db, fmt.Sprintf(`with recursive t as (
			(select %[2]s as at from keep.%[1]s where tenant_id = $1 order by %[2]s limit 1)
			union all
			select (select n.%[2]s from keep.%[1]s n where n.tenant_id = $1 and n.%[2]s > t.at order by n.%[2]s limit 1) from t
				where t.at is not null
		) select at from t where at is not null`, table, column), tenantID)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect reads the values of a column.
func collect[T any](ctx context.Context, db querier, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}
