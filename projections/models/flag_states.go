package models

import (
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections"
)

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

// storesState reports whether the state after an event is stored.
func storesState(e events.Recorded) bool { return e.Revision%state.StoredEvery == 0 }

// storeState stores the flag's rows as its state after an event. It outlives the flag.
func storeState(b *projections.Batch, tenant, key string, e events.Recorded) {
	if storesState(e) {
		b.Queue(insertState, tenant, key, e.Revision, e.At)
	}
}

var insertState = projections.NewStatement("tenant_id text, key text, version bigint, recorded timestamptz",
	`insert into flag_states (tenant_id, key, version, recorded, state)
		select g.tenant_id, g.key, g.version, g.recorded, coalesce((select json_build_object(
			'tenantId', f.tenant_id, 'key', f.key, 'id', f.id, 'name', f.name, 'type', f.type, 'defaultValue', f.default_value,
				'description', f.description,
			'tags', f.tags, 'projectId', coalesce(f.project_id, ''), 'permanent', f.permanent, 'salt', f.salt, 'exists', true,
				'status', f.status, 'createdAt', `+jsonTime("f.created_at")+`, 'updatedAt', `+jsonTime("f.updated_at")+`,
			'version', f.version,
			'variations', (select json_agg(json_build_object('id', v.id, 'name', v.name, 'value', v.value, 'description',
				v.description,
				'weight', trim_scale(v.weight / 1000.0)) order by v.added, v.ordinal) from flag_variations v
					where v.tenant_id = g.tenant_id and v.key = g.key),
			'enabled', coalesce((select json_object_agg(e.environment_id, true order by e.environment_id)
				from flag_environments e where e.tenant_id = g.tenant_id and e.key = g.key), '{}'),
			'rules', coalesce((select json_object_agg(r.environment_id, r.list order by r.environment_id) from
				(select environment_id, json_agg(rule order by position) as list from flag_rules
				where tenant_id = g.tenant_id and key = g.key group by environment_id) r), '{}'),
			'fallthrough', coalesce((select json_object_agg(t.environment_id, t.serve order by t.environment_id)
				from flag_fallthroughs t where t.tenant_id = g.tenant_id and t.key = g.key), '{}')
		) from flags f where f.tenant_id = g.tenant_id and f.key = g.key), json_build_object('version', g.version))
			from given g`)

// jsonTime returns SQL that formats a time as JSON in UTC.
func jsonTime(column string) string {
	return `to_char(` + column + ` at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}
