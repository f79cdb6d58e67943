package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flagledger/migrations/database"

	"github.com/jackc/pgx/v5"
)

// Existing tells which tenants, environments and flags there are.
type Existing interface {
	// Complete reports whether it knows all that there was at some time since it began.
	Complete() bool
	// EnvironmentIDs lists a tenant's environments, and returns false if there is no such tenant.
	EnvironmentIDs(tenantID string) ([]string, bool)
	// FlagLife is the life of a flag, and false if there is no such flag.
	FlagLife(tenantID, key string) (uint64, bool)
}

// A node may not have heard yet of what others know of: what was used since then stays.
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

// RemoveGone removes what is kept of tenants, environments and lives of flags that are over: also what a node wrote
// down late. As long as existing is not complete it removes nothing. It goes on with the other tenants where one's
// fail, and returns the errors of all.
func (m *Meter) RemoveGone(ctx context.Context, existing Existing) error {
	if !existing.Complete() {
		return nil
	}
	seen := map[string]bool{}
	var errs []error
	for _, table := range tablesOfTenants {
		tenants, err := distinctTenants(ctx, m.db, table)
		if err != nil {
			return err
		}
		for _, tenantID := range tenants {
			if seen[tenantID] {
				continue
			}
			seen[tenantID] = true
			if err := m.removeGoneOf(ctx, existing, tenantID); err != nil {
				errs = append(errs, fmt.Errorf("the use of the tenant %s: %w", tenantID, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (m *Meter) removeGoneOf(ctx context.Context, existing Existing, tenantID string) error {
	environments, ok := existing.EnvironmentIDs(tenantID)
	if !ok {
		var late bool
		err := m.db.QueryRow(ctx, `select exists (select from keep.tenant_hours where tenant_id = $1 and hour > $2)`, tenantID, m.now().Add(-tenantGrace)).
			Scan(&late)
		if late || err != nil {
			return err
		}
		return m.ForgetTenant(ctx, tenantID)
	}
	rows, err := m.db.Query(
		ctx,
		`select flag_key, life, environment_id from keep.flag_uses where tenant_id = $1
			and greatest(last_evaluated, last_prefetched) < $2`,
		tenantID,
		m.now().Add(-flagGrace),
	)
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
	// A day whose hours are being added up since before they went is written first.
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
		and not exists (select from keep.flag_uses u where u.tenant_id = $1 and u.flag_key = gone.k and u.life = gone.l)`, tenantID, keys, lives)
	return m.db.SendBatch(ctx, b).Close()
}

// deleteLives deletes from a table what lives of flags have counted in environments.
const deleteLives = `delete from keep.%s as t using unnest($2::text[], $3::bigint[], $4::text[]) as gone (k, l, e)
	where t.tenant_id = $1 and t.flag_key = gone.k and t.life = gone.l and t.environment_id = gone.e`
