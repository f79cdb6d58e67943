package usage

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// manyOutcomes is how many outcomes of a flag are kept without a look at which of them still count.
const manyOutcomes = 1000

// removeOldOutcomes removes outcomes of a tenant's flags that no hour and no day names any more, of flags that have had
// many. One that is served again meanwhile is written down again with the next hour.
func (m *Meter) removeOldOutcomes(ctx context.Context, tenantID string) error {
	rows, err := m.db.Query(ctx,
		`select flag_key, life from keep.flag_outcomes where tenant_id = $1 group by flag_key, life having count(*) > $2`,
		tenantID, manyOutcomes)
	if err != nil {
		return err
	}
	flags, err := pgx.CollectRows(rows, pgx.RowToStructByName[flagOutcomes])
	for i := 0; i < len(flags) && err == nil; i++ {
		err = flags[i].removeOld(ctx, m, tenantID)
	}
	return err
}

// flagOutcomes are those of a life of a flag.
type flagOutcomes struct {
	FlagKey string
	Life    int64
}

func (f flagOutcomes) removeOld(ctx context.Context, m *Meter, tenantID string) error {
	known := map[string]bool{}
	each := func(do func(outcome string), sql string, arguments ...any) error {
		rows, err := m.db.Query(ctx, sql, append([]any{tenantID, f.FlagKey, f.Life}, arguments...)...)
		if err != nil {
			return err
		}
		var outcome string
		_, err = pgx.ForEachRow(rows, []any{&outcome}, func() error {
			do(outcome)
			return nil
		})
		return err
	}
	counts := func(outcome string) { delete(known, outcome) }
	if err := each(
		func(outcome string) { known[outcome] = true },
		`select outcome from keep.flag_outcomes where tenant_id = $1 and flag_key = $2 and life = $3`,
	); err != nil {
		return err
	}
	if err := each(
		counts,
		`select outcome from keep.flag_uses where tenant_id = $1 and flag_key = $2 and life = $3 and outcome is not null`,
	); err != nil {
		return err
	}
	for table, column := range map[string]string{"flag_hours": "hour", "flag_days": "day"} {
		times, err := m.distinctTimes(ctx, table, column, tenantID)
		if err != nil {
			return err
		}
		at := fmt.Sprintf(
			`select json_object_keys(outcomes::json) from keep.%s where tenant_id = $1 and flag_key = $2 and life = $3
				and %s = $4`,
			table,
			column,
		)
		for _, t := range times {
			if err := each(counts, at, t); err != nil {
				return err
			}
		}
	}
	old := make([]string, 0, len(known))
	for outcome := range known {
		old = append(old, outcome)
	}
	return m.deleteRows(ctx, "flag_outcomes", `tenant_id = $1 and flag_key = $2 and life = $3 and outcome = any($4)`,
		tenantID, f.FlagKey, f.Life, old)
}
