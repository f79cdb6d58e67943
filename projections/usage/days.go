package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// DaysOfHours is for how many days before today hours are stored.
	DaysOfHours        = 30
	dailyRetentionDays = 400

	// removalLock is held while a day of a tenant is summed, and shared by who removes days.
	removalLock = 0x666c6167_75736573
	// dayLockClass is of the locks of days: one is held while its day is summed, and shared by who writes hours of the
	// day.
	dayLockClass = 0x75736573
	// sumAfter is when a day is summed after its end: by then all nodes have written its last hour, also those whose
	// clocks are slow.
	sumAfter = time.Hour
	// maxDayClients limits the clients of a day to those that a tenant can have at once, and people.
	maxDayClients = 201
	// manyOutcomes is how many outcomes of a flag are stored without a look at which of them still count.
	manyOutcomes = 1000
)

// hourTables are the tables of hours. If a node ended between two pages, one of them may lack an hour.
var hourTables = []string{"flag_hours", "tenant_hours"}

// SumDays sums the hours of each tenant's past days, again if hours came later, and removes old hours and days. It may
// be repeated. It goes on with the other days and tenants if some fail, and returns the errors of all.
func (m *Meter) SumDays(ctx context.Context) error {
	tenants, err := m.distinctTenants(ctx, hourTables...)
	if err != nil {
		return err
	}
	today, over := m.now().UTC().Truncate(Daily), m.now().UTC().Add(-sumAfter).Truncate(Daily)
	first := today.AddDate(0, 0, -dailyRetentionDays)
	var errs []error
	for _, tenantID := range tenants {
		errs = append(errs, m.sumTenantDays(ctx, tenantID, first, over), m.removeOldHours(ctx, tenantID, today, first))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(errs, m.removeOldDays(ctx, first))...)
}

func (m *Meter) sumTenantDays(ctx context.Context, tenantID string, from, end time.Time) error {
	days, err := m.unsummedDays(ctx, tenantID, from, end)
	if err != nil {
		return err
	}
	var errs []error
	for _, day := range days {
		if err := m.sumDay(ctx, tenantID, day); err != nil {
			errs = append(errs, fmt.Errorf("the hours of %s of the tenant %s: %w", day.Format(time.DateOnly), tenantID, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) > 0 || len(days) == 0 { // once a day is enough
		return errors.Join(errs...)
	}
	return m.removeOldOutcomes(ctx, tenantID, from)
}

// unsummedDays lists the days between two that a tenant has hours of and that are not summed. The index finds each.
func (m *Meter) unsummedDays(ctx context.Context, tenantID string, from, end time.Time) ([]time.Time, error) {
	return collect[time.Time](ctx, m.db, `
		select d.day::date from generate_series($2::date::timestamp, $3::date::timestamp - interval '1 day', '1 day') d (day)
		cross join lateral (select d.day at time zone 'UTC' as first, (d.day + interval '1 day') at time zone 'UTC' as last) h
		where not exists (select from keep.use_days u where u.tenant_id = $1 and u.day = d.day::date)
			and (exists (select from keep.flag_hours f where f.tenant_id = $1 and f.hour >= h.first and f.hour < h.last)
				or exists (select from keep.tenant_hours t where t.tenant_id = $1 and t.hour >= h.first and t.hour < h.last))
		order by 1`, tenantID, from, end)
}

// sumSettings are for summing a day: the hours of many flags are sorted at once, longer than other statements may take.
const sumSettings = `set local statement_timeout = '5min'; set local work_mem = '64MB'`

func (m *Meter) sumDay(ctx context.Context, tenantID string, day time.Time) error {
	return pgx.BeginFunc(ctx, m.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sumSettings); err != nil {
			return err
		}
		if err := lockDay(ctx, tx, day); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sumHours, pgx.NamedArgs{
			"tenant": tenantID, "day": day, "end": day.Add(Daily), "rest": RestOutcome.ID, "outcomes": maxOutcomes,
			"clients": maxDayClients,
		})
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
func dayNumber(day time.Time) int64 { return day.Unix() / int64(Daily/time.Second) }

// sumHours sums the hours of a tenant's day, which it marks as summed. A day has the most frequent outcomes and one for
// the rest, and the most active clients, each with the last time that it was seen.
const sumHours = `
	with hours as materialized (
		select flag_key, life, environment_id, evaluations, prefetches, reasons, outcomes, clients from keep.flag_hours
			where tenant_id = @tenant and hour >= @day::timestamptz and hour < @end::timestamptz
		union all
		select '', 0, environment_id, evaluations, prefetches, reasons, '{}', clients from keep.tenant_hours
			where tenant_id = @tenant and hour >= @day::timestamptz and hour < @end::timestamptz
	), sums as (
		select flag_key, life, environment_id, sum(evaluations)::bigint as evaluations, sum(prefetches)::bigint as prefetches
		from hours group by 1, 2, 3
	), counts as (
		select flag_key, life, environment_id, kind, name, sum(n)::bigint as n, max(seen) as seen,
			sum(reported)::bigint as reported
		from hours cross join lateral (
			select 'reason' as kind, key as name, value::text::bigint as n, null::bigint as seen,
				0::bigint as reported from json_each(reasons::json)
			union all select 'outcome', key, value::text::bigint, null, 0 from json_each(outcomes::json)
			union all select 'client', key, (value->>0)::bigint, (value->>1)::bigint, coalesce((value->>2)::bigint, 0)
				from json_each(clients::json)
		) c group by 1, 2, 3, 4, 5
	), ranked as (
		select *, row_number() over (partition by flag_key, life, environment_id, kind
			order by name = @rest, n desc, name) as place from counts
	), limited as (
		select flag_key, life, environment_id, kind, sum(n)::bigint as n, max(seen) as seen,
			sum(reported)::bigint as reported,
			case when kind = 'outcome' and place > @outcomes::int then @rest::text else name end as name
		from ranked where kind <> 'client' or place <= @clients::int
		group by flag_key, life, environment_id, kind, 8
	), objects as (
		select flag_key, life, environment_id,
			json_object_agg(name, n) filter (where kind = 'reason')::text as reasons,
			json_object_agg(name, n) filter (where kind = 'outcome')::text as outcomes,
			json_object_agg(name, json_build_array(n, seen, reported)) filter (where kind = 'client')::text as clients
		from limited group by 1, 2, 3
	), days as (
		select flag_key, life, environment_id, evaluations, prefetches, coalesce(reasons, '{}') as reasons,
			coalesce(outcomes, '{}') as outcomes, coalesce(clients, '{}') as clients
		from sums left join objects using (flag_key, life, environment_id)
	), flags as (
		insert into keep.flag_days (tenant_id, day, flag_key, life, environment_id, evaluations, prefetches, reasons,
			outcomes, clients)
		select @tenant, @day::date, flag_key, life, environment_id, evaluations, prefetches, reasons, outcomes, clients
		from days where flag_key <> ''
		on conflict (tenant_id, day, flag_key, life, environment_id) do update set
			evaluations = excluded.evaluations, prefetches = excluded.prefetches, reasons = excluded.reasons,
			outcomes = excluded.outcomes, clients = excluded.clients
	), totals as (
		insert into keep.tenant_days (tenant_id, day, environment_id, evaluations, prefetches, reasons, clients)
		select @tenant, @day::date, environment_id, evaluations, prefetches, reasons, clients from days where flag_key = ''
		on conflict (tenant_id, day, environment_id) do update set
			evaluations = excluded.evaluations, prefetches = excluded.prefetches, reasons = excluded.reasons,
			clients = excluded.clients
	)
	insert into keep.use_days (tenant_id, day) values (@tenant, @day::date) on conflict do nothing`

// removeOldHours removes hours once their day is summed, or is not stored any more itself.
func (m *Meter) removeOldHours(ctx context.Context, tenantID string, today, first time.Time) error {
	for _, table := range hourTables {
		err := m.deleteRows(ctx, table, `tenant_id = $1 and hour < $2
			and (hour < $3 or (hour at time zone 'UTC')::date in (select day from keep.use_days where tenant_id = $1))`,
			tenantID, today.AddDate(0, 0, -DaysOfHours), first)
		if err != nil {
			return fmt.Errorf("the old hours of the tenant %s: %w", tenantID, err)
		}
	}
	return nil
}

func (m *Meter) removeOldDays(ctx context.Context, before time.Time) error {
	var errs []error
	for _, table := range []string{"flag_days", "tenant_days", "use_days"} {
		tenants, err := m.distinctTenants(ctx, table)
		errs = append(errs, err)
		for _, tenantID := range tenants {
			if err := m.deleteRows(ctx, table, `tenant_id = $1 and day < $2`, tenantID, before); err != nil {
				errs = append(errs, fmt.Errorf("the old days of the tenant %s: %w", tenantID, err))
			}
		}
	}
	return errors.Join(errs...)
}

// removeOldOutcomes removes outcomes that no hour or day names any more, of a tenant's flags that have had many. One
// that is served again meanwhile is written again with the next hour.
func (m *Meter) removeOldOutcomes(ctx context.Context, tenantID string, first time.Time) error {
	// Hours and days are looked up one by one, since their index begins with them.
	_, err := m.db.Exec(ctx, `
		with many as materialized (
			select flag_key, life from keep.flag_outcomes where tenant_id = $1 group by flag_key, life having count(*) > $2
		), named as (
			select m.*, u.outcome from many m join keep.flag_uses u on u.tenant_id = $1 and u.flag_key = m.flag_key
				and u.life = m.life
			union select m.*, json_object_keys(h.outcomes::json)
				from many m cross join generate_series($3::timestamptz, $4, '1 hour') at cross join lateral (
					select outcomes from keep.flag_hours where tenant_id = $1 and hour = at and flag_key = m.flag_key
						and life = m.life offset 0) h
			union select m.*, json_object_keys(d.outcomes::json)
				from many m cross join generate_series($3::timestamptz, $4, '1 day') at cross join lateral (
					select outcomes from keep.flag_days where tenant_id = $1 and day = (at at time zone 'UTC')::date
						and flag_key = m.flag_key and life = m.life offset 0) d
		)
		delete from keep.flag_outcomes o using many m where o.tenant_id = $1 and o.flag_key = m.flag_key and o.life = m.life
			and not exists (select from named n where n.flag_key = o.flag_key and n.life = o.life and n.outcome = o.outcome)`,
		tenantID, manyOutcomes, first, m.now())
	return err
}
