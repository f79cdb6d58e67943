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
    default_value   json, -- null if it is that of an earlier row
    ` + listedSchema + `
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
	// beginFlagSpan begins a span, and ends the one before it unless that has ended. Without a default value it has that
	// of an earlier span.
	beginFlagSpan = projections.NewStatement(
		"tenant_id text, key text, default_value json, version bigint, created_version bigint, created_at timestamptz, "+
			"recorded timestamptz, "+listedTypes,
		`, ended as (update flag_spans s set until = least(s.until, g.recorded) from `+lastSpan+`
			returning s.tenant_id, s.key, s.default_version)
		insert into flag_spans (tenant_id, key, version, created_version, default_version, default_value, created_at,
			since, `+listedNames+`)
		select g.tenant_id, g.key, g.version, g.created_version,
			case when g.default_value is null then e.default_version else g.version end, g.default_value, g.created_at,
			g.recorded, `+listedNames+`
		from given g left join ended e on e.tenant_id = g.tenant_id and e.key = g.key`,
	)
	endFlagSpan = projections.NewStatement("tenant_id text, key text, recorded timestamptz",
		`update flag_spans s set until = least(s.until, g.recorded) from `+lastSpan)
	enableFlag = projections.NewStatement(
		"tenant_id text, key text, environment_id text, version bigint, recorded timestamptz",
		`, enabled as (insert into flag_environments (tenant_id, key, environment_id)
			select tenant_id, key, environment_id from given)
		insert into flag_environment_spans (tenant_id, key, environment_id, version, since)
			select tenant_id, key, environment_id, version, recorded from given`,
	)
	disableFlag = projections.NewStatement(
		"tenant_id text, key text, environment_id text, recorded timestamptz",
		`, disabled as (delete from flag_environments e using given g where e.tenant_id = g.tenant_id and e.key = g.key
			and e.environment_id = g.environment_id returning e.*, g.recorded)
		`+endEnvironmentSpans,
	)
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
