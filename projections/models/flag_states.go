package models

import (
	"context"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections"
)

// maxFlagStates is how many bytes of folded states the read model of flags caches.
const maxFlagStates = 64 << 20

// flagModel folds the facts of flags. It caches the states of those that changed last, and reads others from the rows.
type flagModel struct {
	flags     map[string]*state.Flag // by stream
	size      int                    // of all, in bytes
	rewritten map[string]bool        // flags whose row this page writes whole
}

func newFlagModel() *flagModel {
	return &flagModel{flags: map[string]*state.Flag{}, rewritten: map[string]bool{}}
}

// keep caches a state, which nothing changes from then on.
func (m *flagModel) keep(stream string, f *state.Flag) {
	if was := m.flags[stream]; was != nil {
		m.size -= was.Size()
	}
	m.flags[stream] = f
	m.size += f.Size()
}

// Load implements projections.Model.
func (m *flagModel) Load(
	ctx context.Context, use func(func(*pgx.Conn) error) error, list []events.Recorded,
) error {
	clear(m.rewritten)
	if m.size > maxFlagStates {
		clear(m.flags)
		m.size = 0
	}
	var tenants, keys []string
	for _, e := range list {
		if m.flags[e.Stream] != nil {
			continue
		}
		m.keep(e.Stream, &state.Flag{})
		if e.Revision > 1 {
			tenant, key := events.ParseFlagStream(e.Stream)
			tenants, keys = append(tenants, tenant), append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return use(func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, flagStatesSQL, tenants, keys)
		if err != nil {
			return err
		}
		loaded, err := pgx.CollectRows(rows, pgx.RowToStructByName[flagStateRow])
		if err != nil {
			return err
		}
		for _, row := range loaded {
			f := row.state()
			m.keep(events.FlagStream(f.TenantID, f.Key), f)
		}
		return nil
	})
}

// flagStateRow is all rows of a flag.
type flagStateRow struct {
	Flag       flagColumns
	Variations []events.Variation
	Enabled    []string
	Rules      []struct {
		Environment string
		Rule        events.Rule
	}
	Fallthroughs map[string]events.Serve
}

// flagStatesSQL reads flags by their tenants and keys.
const flagStatesSQL = `select to_json(f) as flag,
		(select coalesce(json_agg(json_build_object('id', v.id, 'name', v.name, 'value', v.value,
			'description', v.description, 'weight', trim_scale(v.weight / 1000.0)) order by v.ordinal), '[]')
			from flag_variations v where v.tenant_id = f.tenant_id and v.key = f.key) as variations,
		array(select e.environment_id from flag_environments e
			where e.tenant_id = f.tenant_id and e.key = f.key) as enabled,
		(select coalesce(json_agg(json_build_object('environment', r.environment_id, 'rule', r.rule)
			order by r.environment_id, r.position), '[]') from flag_rules r
			where r.tenant_id = f.tenant_id and r.key = f.key) as rules,
		(select coalesce(json_object_agg(t.environment_id, t.serve), '{}') from flag_fallthroughs t
			where t.tenant_id = f.tenant_id and t.key = f.key) as fallthroughs
	from unnest($1::text[], $2::text[]) g (tenant_id, key) join flags f on f.tenant_id = g.tenant_id and f.key = g.key`

func (r flagStateRow) state() *state.Flag {
	f := r.Flag.state()
	if f.Variations = r.Variations; len(f.Variations) == 0 {
		f.Variations = nil
	}
	if f.Fallthrough = r.Fallthroughs; len(f.Fallthrough) == 0 {
		f.Fallthrough = nil
	}
	for _, id := range r.Enabled {
		f.Enabled = f.Enabled.With(id)
	}
	for _, rule := range r.Rules {
		f.SetRules(rule.Environment, append(f.Rules[rule.Environment], rule.Rule))
	}
	return f
}

var flagStatesTable = &projections.Table{
	Name:    "flag_states",
	Columns: []string{"tenant_id", "key", "version", "recorded", "state"},
}

const flagStatesSchema = `
create table flag_states (
    tenant_id text        not null,
    key       text collate "C" not null,
    version   bigint      not null,
    recorded  timestamptz not null, -- when the store recorded the version
    state     json        not null, -- of events/state
    primary key (tenant_id, key, version)
);`

const flagStatesIndexes = `
create index if not exists flag_states_recorded on flag_states (tenant_id, key, recorded, version);`
