package models

import "flagledger/projections"

var flagSpanTables = []string{"flag_spans", "flag_environment_spans", "flag_versions"}

// flagSpans stores what lists of flags showed at any time. Enabled environments have a table of their own, so that a
// toggle copies nothing else.
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
    permanent       boolean     not null,
    status          text        not null,
    created_at      timestamptz not null,
    since           timestamptz not null,
    until           timestamptz not null default 'infinity',
    primary key (tenant_id, key, version)
);
create table flag_environment_spans ( -- the flag is enabled in the environment from since up to, but not at, until
    tenant_id      text        not null,
    key            text collate "C" not null,
    environment_id text        not null,
    version        bigint      not null, -- of the flag, that the row began with
    since          timestamptz not null,
    until          timestamptz not null default 'infinity',
    primary key (tenant_id, key, environment_id, version)
);
create table flag_versions ( -- a row for each event
    tenant_id  text        not null,
    key        text collate "C" not null,
    version    bigint      not null,
    recorded   timestamptz not null,
    updated_at timestamptz generated always as (recorded) stored, -- read by nodes of the previous release alone
    primary key (tenant_id, key, recorded, version)
);
`

const flagSpansIndexes = `
-- What held at a time is found without the rows that were over by then.
create index if not exists flag_spans_until on flag_spans (tenant_id, until, since, key);
create index if not exists flag_environment_spans_until on flag_environment_spans (tenant_id, environment_id, until,
	since, key);
create index if not exists flag_spans_project on flag_spans (project_id) where project_id is not null;`

var flagVersionsTable = &projections.Table{
	Name:    "flag_versions",
	Columns: []string{"tenant_id", "key", "version", "recorded"},
}

var (
	// createFlag adds the row of a flag, and begins its span.
	createFlag = projections.NewStatement(
		"tenant_id text, key text, id text, name text, type text, default_value json, description text, tags text[], "+
			"project_id text, permanent boolean, salt text, "+
			"version bigint, recorded timestamptz",
		`, f as (insert into flags
				(tenant_id, key, id, name, type, default_value, description, tags, project_id, permanent, status, salt, version,
					created_version, created_at, updated_at)
				select tenant_id, key, id, name, type, default_value, description, tags, nullif(project_id, ''), permanent,
					'active', salt, version, version as created_version, recorded, recorded from given)
		insert into flag_spans
			(version, tenant_id, created_version, key, default_version, id, name, type, default_value, description, tags,
				project_id, permanent, status, created_at, since)
		select version, tenant_id, version, key, version, id, name, type, default_value, description, tags,
			nullif(project_id, ''), permanent, 'active', recorded, recorded from given`,
	)
	// updateFlag changes the row of a flag, ends its span and begins the next.
	updateFlag = projections.NewStatement(
		"tenant_id text, key text, name text, default_value json, description text, tags text[], project_id text, "+
			"permanent boolean, status text, "+
			"version bigint, recorded timestamptz",
		`, f as (update flags f set name = coalesce(g.name, f.name), default_value = coalesce(g.default_value,
			f.default_value), description = coalesce(g.description, f.description),
				tags = coalesce(g.tags, f.tags), project_id = nullif(coalesce(g.project_id, f.project_id), ''),
				permanent = coalesce(g.permanent, f.permanent), status = coalesce(g.status, f.status)
				from given g where f.tenant_id = g.tenant_id and f.key = g.key),
			next as (update flag_spans s set until = g.recorded from `+lastSpan+`
				returning g.tenant_id, g.key, g.version, s.created_version, case
					when g.default_value is null then s.default_version else g.version end as default_version,
					s.id, coalesce(g.name, s.name) as name, s.type, g.default_value, coalesce(g.description, s.description) as
						description, coalesce(g.tags, s.tags) as tags,
					nullif(coalesce(g.project_id, s.project_id), '') as project_id, coalesce(g.permanent, s.permanent) as permanent,
						coalesce(g.status, s.status) as status, s.created_at, g.recorded)
		insert into flag_spans
			(tenant_id, key, version, created_version, default_version, id, name, type, default_value, description, tags,
				project_id, permanent, status, created_at, since)
		select tenant_id, key, version, created_version, default_version, id, name, type, default_value, description, tags,
			project_id, permanent, status, created_at, recorded from next`,
	)
	// enableFlag does nothing if the flag is already enabled.
	enableFlag = projections.NewStatement(
		"tenant_id text, key text, environment_id text, version bigint, recorded timestamptz",
		`, new as (select * from given g where not exists
				(select from flag_environments e where e.tenant_id = g.tenant_id and e.key = g.key
					and e.environment_id = g.environment_id)),
			enabled as (insert into flag_environments (tenant_id, key, environment_id) select tenant_id, key, environment_id
				from new)
		insert into flag_environment_spans (tenant_id, key, environment_id, version, since)
			select tenant_id, key, environment_id, version, recorded from new`,
	)
	disableFlag = projections.NewStatement(
		"tenant_id text, key text, environment_id text, recorded timestamptz",
		`, disabled as (delete from flag_environments e using given g where e.tenant_id = g.tenant_id and e.key = g.key
			and e.environment_id = g.environment_id returning e.*, g.recorded)
		`+endEnvironmentSpans,
	)
	endFlagSpans = projections.NewStatement("tenant_id text, key text, recorded timestamptz",
		`update flag_spans s set until = g.recorded from `+lastSpan)
)

// endEnvironmentSpans ends the spans of the rows in disabled. Here and below, `offset 0` and ctid force the
// primary-key lookup; without statistics the planner scans the other index.
const endEnvironmentSpans = `update flag_environment_spans s set until = d.recorded
	from (select *, (select ctid from flag_environment_spans s where s.tenant_id = disabled.tenant_id
		and s.key = disabled.key and s.environment_id = disabled.environment_id
		order by version desc limit 1) as last from disabled offset 0) d
	where s.ctid = d.last`

// lastSpan joins the last span of each given flag.
const lastSpan = `(select *, (select ctid from flag_spans s where s.tenant_id = given.tenant_id and s.key = given.key
	order by version desc limit 1) as last from given offset 0) g
	where s.ctid = g.last`
