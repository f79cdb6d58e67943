package models

import (
	"flagledger/events"
	"flagledger/projections"
)

var flagSpanTables = []string{"flag_spans", "flag_versions"}

// flagSpans are tables of what the lists of flags held at any time. What every change touches stands apart: a switch that is turned copies nothing else.
const flagSpans = `
create table flag_spans ( -- holds from the recorded time since up to, but not at, until
    tenant_id       text        not null,
    key             text collate "C" not null,
    version         bigint      not null, -- of the flag, that the row began with
    created_version bigint      not null, -- of the flag, when it was created
    default_version bigint      not null, -- of the row that has the default value
    id              text        not null,
    name            text        not null,
    type            text        not null,
    default_value   json, -- null where it is that of an earlier row
    description     text        not null,
    tags            text[]      not null,
    project_id      text,
    status          text        not null,
    created_at      timestamptz not null,
    since           timestamptz not null,
    until           timestamptz not null default 'infinity',
    primary key (tenant_id, key, version)
);
create table flag_versions ( -- a row for each event
    tenant_id      text        not null,
    key            text collate "C" not null,
    version        bigint      not null,
    recorded       timestamptz not null,
    updated_at     timestamptz not null,
    environment_id text, -- where the flag was switched; null for other changes
    enabled        boolean, -- there
    primary key (tenant_id, key, recorded, version)
);
`

const flagSpansIndexes = `
create index if not exists flag_spans_project on flag_spans (project_id) where project_id is not null;
create index if not exists flag_versions_switches on flag_versions (tenant_id, key, environment_id, recorded, version) where environment_id is not null;`

var flagVersionsTable = &projections.Table{Name: "flag_versions", Columns: []string{"tenant_id", "key", "version", "recorded", "updated_at", "environment_id", "enabled"}}

const (
	// createFlag makes the row of a flag, and begins its span.
	createFlag = `with f as (insert into flags
				(tenant_id, key, id, name, type, default_value, description, tags, project_id, status, salt, version, created_at, updated_at)
				values ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), 'active', $10, $11, $12, $12) returning *)
		insert into flag_spans (version, tenant_id, created_version, key, default_version, id, name, type, default_value, description, tags, project_id, status, created_at, since)
		select version, tenant_id, version, key, version, id, name, type, default_value, description, tags, project_id, status, created_at, $13 from f`
	// updateFlag changes the row of a flag, and ends one span and begins the next.
	updateFlag = `with f as (update flags set name = coalesce($3, name), default_value = coalesce($4, default_value), description = coalesce($5, description),
				tags = coalesce($6, tags), project_id = nullif(coalesce($7, project_id), ''), status = coalesce($8, status) where tenant_id = $1 and key = $2 returning *),
			last as (update flag_spans set until = $10 where tenant_id = $1 and key = $2
				and version = (select version from flag_spans where tenant_id = $1 and key = $2 order by version desc limit 1)
				returning created_version, default_version)
		insert into flag_spans (tenant_id, key, version, created_version, default_version, id, name, type, default_value, description, tags, project_id, status, created_at, since)
		select f.tenant_id, f.key, $9::bigint, last.created_version, case when $4 is null then last.default_version else $9 end, f.id, f.name, f.type,
			case when $4 is not null then f.default_value end, f.description, f.tags, f.project_id, f.status, f.created_at, $10
		from f, last`
	endFlagSpans = `update flag_spans set until = $3 where tenant_id = $1 and key = $2
		and version = (select max(version) from flag_spans where tenant_id = $1 and key = $2)`
)

// keepFlagVersion queues the row of flag_versions of an event.
func keepFlagVersion(b *projections.Batch, tenant, key string, e events.Recorded, fact events.FlagFact) {
	var environment *string
	var enabled *bool
	switch fact := fact.(type) {
	case events.FlagEnabled:
		environment, enabled = &fact.Environment.ID, new(true)
	case events.FlagDisabled:
		environment, enabled = &fact.Environment.ID, new(false)
	case events.FlagCreated, events.FlagUpdated, events.FlagStatusChanged, events.FlagDeleted, events.VariationAdded, events.VariationUpdated, events.VariationRemoved,
		events.RulesChanged, events.FallthroughChanged, events.FlagReverted:
	}
	b.Insert(flagVersionsTable, tenant, key, e.Revision, e.At, e.Time, environment, enabled)
}
