package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flagledger/projections/usage/counted"

	"github.com/jackc/pgx/v5"
)

const (
	aDay               = 24 * time.Hour
	dailyRetentionDays = 400

	// removalLock is held while a day of a tenant is added up, and shared by who removes days.
	removalLock = 0x666c6167_75736573
	// dayLockClass is of the locks of days: one is held while its day is added up, and shared by who writes down hours of
	// the day.
	dayLockClass = 0x75736573
)

// addUpAfter is when a day is added up after its end: by then all nodes have written down its last hour, also those
// whose clocks are slow.
const addUpAfter = time.Hour

// hourTables have the hours. A node that ended between two pages may have written down those of one alone.
var hourTables = []string{"flag_hours", "tenant_hours"}

// AddUpDays adds up the hours of each tenant's days that are over, once and again where hours came later, and removes
// hours and days that are no longer kept. It may be repeated. It goes on with the other days and tenants where some
// fail, and returns the errors of all.
func (m *Meter) AddUpDays(ctx context.Context) error {
	var tenants []string
	for _, table := range hourTables {
		more, err := distinctTenants(ctx, m.db, table)
		if err != nil {
			return err
		}
		tenants = append(tenants, more...)
	}
	slices.Sort(tenants)
	tenants = slices.Compact(tenants)
	today := m.now().UTC().Truncate(aDay)
	over := m.now().UTC().Add(-addUpAfter).Truncate(aDay)
	var errs []error
	for _, tenantID := range tenants {
		errs = append(errs, m.addUpDaysOf(ctx, tenantID, today.AddDate(0, 0, -dailyRetentionDays), over),
			m.removeOldHours(ctx, tenantID, today))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(errs, m.removeOldDays(ctx, today.AddDate(0, 0, -dailyRetentionDays)))...)
}

func (m *Meter) addUpDaysOf(ctx context.Context, tenantID string, from, end time.Time) error {
	days, err := m.daysToAddUp(ctx, tenantID, from, end)
	if err != nil {
		return err
	}
	var errs []error
	for _, day := range days {
		if err := m.addUpDay(ctx, tenantID, day); err != nil {
			errs = append(errs, fmt.Errorf("the hours of %s of the tenant %s: %w", day.Format(time.DateOnly), tenantID, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) > 0 || len(days) == 0 { // once a day is enough
		return errors.Join(errs...)
	}
	return m.removeOldOutcomes(ctx, tenantID)
}

// daysToAddUp lists the days between two that a tenant has hours of and that are not added up, each of which the index
// finds at once.
func (m *Meter) daysToAddUp(ctx context.Context, tenantID string, from, end time.Time) ([]time.Time, error) {
	var of []string
	for _, table := range hourTables {
		of = append(of, `select day from (with recursive d as (
			(select (hour at time zone 'UTC')::date as day from keep.`+table+` where tenant_id = $1 and hour >= $2 and hour < $3
				order by hour limit 1)
			union all
			select (select (n.hour at time zone 'UTC')::date from keep.`+table+` n where n.tenant_id = $1
				and n.hour >= (d.day + 1)::timestamp at time zone 'UTC' and n.hour < $3 order by n.hour limit 1) from d
					where d.day is not null
		) select day from d where day is not null) `+table)
	}
	rows, err := m.db.Query(ctx,
		`(`+strings.Join(of, ` union `)+`) except select day from keep.use_days where tenant_id = $1 order by day`, tenantID,
		from, end)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

// addUpSettings are for adding up a day: the hours of many flags are sorted at once, longer than other statements may
// take.
const addUpSettings = `set local statement_timeout = '5min'; set local work_mem = '64MB'`

func (m *Meter) addUpDay(ctx context.Context, tenantID string, day time.Time) error {
	return pgx.BeginFunc(ctx, m.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, addUpSettings); err != nil {
			return err
		}
		if err := lockDay(ctx, tx, day); err != nil {
			return err
		}
		if err := addUpTenant(ctx, tx, tenantID, day); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into keep.use_days (tenant_id, day) values ($1, $2) on conflict do nothing`, tenantID,
			day)
		return err
	})
}

func lockDay(ctx context.Context, tx pgx.Tx, day time.Time) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(removalLock)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1::int, $2::int)`, dayLockClass, dayNumber(day))
	return err
}

// dayNumber names a day as a lock.
func dayNumber(day time.Time) int64 { return day.Unix() / int64(aDay/time.Second) }

// dayCounts are the counts of a flag in an environment on a day, or of all flags where the key is empty. readHour reads
// one of an hour.
type dayCounts struct {
	key, environmentID string
	life               int64
	counts
}

// fetchSize is how many hours are read at once.
const fetchSize = 2000

func addUpTenant(ctx context.Context, tx pgx.Tx, tenantID string, day time.Time) error {
	for _, from := range []string{
		`select '' as flag_key, 0::bigint as life, environment_id, evaluations, prefetches, reasons, '{}' as outcomes,
			clients from keep.tenant_hours`,
		`select flag_key, life, environment_id, evaluations, prefetches, reasons, outcomes, clients from keep.flag_hours`,
	} {
		_, err := tx.Exec(
			ctx,
			`declare hours no scroll cursor for `+from+` where tenant_id = $1 and hour >= $2 and hour < $3
				order by flag_key, life, environment_id`,
			pgx.QueryExecModeSimpleProtocol,
			tenantID,
			day,
			day.Add(aDay),
		)
		if err != nil {
			return err
		}
		if err := addUpCursor(ctx, tx, tenantID, day); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `close hours`); err != nil {
			return err
		}
	}
	return nil
}

// addUpCursor adds up the hours of a cursor, whose rows of a flag and environment follow one another.
func addUpCursor(ctx context.Context, tx pgx.Tx, tenantID string, day time.Time) error {
	var days []*dayCounts
	for {
		rows, err := tx.Query(ctx, fmt.Sprintf(`fetch %d from hours`, fetchSize))
		if err != nil {
			return err
		}
		hours, err := pgx.CollectRows(rows, readHour)
		if err != nil {
			return err
		}
		for _, h := range hours {
			if n := len(days); n > 0 && days[n-1].key == h.key && days[n-1].life == h.life &&
				days[n-1].environmentID == h.environmentID {
				days[n-1].add(&h.counts)
			} else {
				days = append(days, h)
			}
		}
		whole := len(days)
		if len(hours) == fetchSize {
			whole-- // more of the last one may follow
		}
		if err := writeDays(ctx, tx, tenantID, day, days[:max(whole, 0)]); err != nil || len(hours) < fetchSize {
			return err
		}
		days = append([]*dayCounts(nil), days[whole:]...)
	}
}

// hourRow is a row of flag_hours or tenant_hours.
type hourRow struct {
	FlagKey                    string
	Life                       int64
	EnvironmentID              string
	Evaluations, Prefetches    int64
	Reasons, Outcomes, Clients []byte
}

func readHour(row pgx.CollectableRow) (*dayCounts, error) {
	r, err := pgx.RowToStructByName[hourRow](row)
	if err != nil {
		return nil, err
	}
	h := dayCounts{
		key:           r.FlagKey,
		environmentID: r.EnvironmentID,
		life:          r.Life,
		counts:        counts{evaluations: r.Evaluations, prefetches: r.Prefetches},
	}
	if h.reasons, err = readTallies(r.Reasons); err != nil {
		return nil, err
	}
	if h.outcomes, err = readTallies(r.Outcomes); err != nil {
		return nil, err
	}
	h.clients, err = readClients(r.Clients)
	return &h, err
}

func writeDays(ctx context.Context, tx pgx.Tx, tenantID string, day time.Time, days []*dayCounts) error {
	var flags, tenant rows
	for _, d := range days {
		d.bound()
		r := &flags
		if d.key == "" {
			r = &tenant
		}
		r.add(tenantID, d.key, d.life, d.environmentID, &d.counts)
	}
	b := &pgx.Batch{}
	if r := &flags; len(r.keys) > 0 {
		b.Queue(
			`insert into keep.flag_days (tenant_id, day, flag_key, life, environment_id, evaluations, prefetches, reasons,
				outcomes, clients)
			select $1, $2, k, l, e, n, p, r, o, c
			from unnest($3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[])
				as u (k, l, e, n, p, r, o, c)
			on conflict (tenant_id, day, flag_key, life, environment_id) do update set
				evaluations = excluded.evaluations, prefetches = excluded.prefetches, reasons = excluded.reasons, outcomes =
					excluded.outcomes, clients = excluded.clients`,
			tenantID,
			day,
			r.keys,
			r.lives,
			r.environments,
			r.evaluations,
			r.prefetches,
			r.reasons,
			r.outcomes,
			r.clients,
		)
	}
	if r := &tenant; len(r.keys) > 0 {
		b.Queue(`insert into keep.tenant_days (tenant_id, day, environment_id, evaluations, prefetches, reasons, clients)
			select $1, $2, e, n, p, r, c from unnest($3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) as u (e, n,
				p, r, c)
			on conflict (tenant_id, day, environment_id) do update set
				evaluations = excluded.evaluations, prefetches = excluded.prefetches, reasons = excluded.reasons, clients =
					excluded.clients`,
			tenantID, day, r.environments, r.evaluations, r.prefetches, r.reasons, r.clients)
	}
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}

// removeOldHours removes hours once their day is added up, or is not kept any more itself.
func (m *Meter) removeOldHours(ctx context.Context, tenantID string, today time.Time) error {
	before, anyhow := today.AddDate(0, 0, -counted.DaysOfHours), today.AddDate(0, 0, -dailyRetentionDays)
	for _, table := range hourTables {
		err := m.deleteRows(ctx, table, `tenant_id = $1 and hour < $2
			and (hour < $3 or (hour at time zone 'UTC')::date in (select day from keep.use_days where tenant_id = $1))`, tenantID, before, anyhow)
		if err != nil {
			return fmt.Errorf("the old hours of the tenant %s: %w", tenantID, err)
		}
	}
	return nil
}

func (m *Meter) removeOldDays(ctx context.Context, before time.Time) error {
	var errs []error
	for _, table := range []string{"flag_days", "tenant_days", "use_days"} {
		tenants, err := distinctTenants(ctx, m.db, table)
		errs = append(errs, err)
		for _, tenantID := range tenants {
			if err := m.deleteRows(ctx, table, `tenant_id = $1 and day < $2`, tenantID, before); err != nil {
				errs = append(errs, fmt.Errorf("the old days of the tenant %s: %w", tenantID, err))
			}
		}
	}
	return errors.Join(errs...)
}
