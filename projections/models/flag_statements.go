package models

import "flagledger/projections"

// Statements that change the current rows of flags. flag_spans.go and flag_states.go store historical ones.
var (
	// touchFlag may run after the flag was deleted and created again.
	touchFlag = projections.NewStatement(
		"tenant_id text, key text, version bigint, recorded timestamptz",
		`update flags f set version = g.version, updated_at = g.recorded from given g where f.tenant_id = g.tenant_id
			and f.key = g.key and f.version < g.version`,
	)
	deleteFlag = projections.NewStatement("tenant_id text, key text, recorded timestamptz",
		`, v as (delete from flag_variations t using given g where t.tenant_id = g.tenant_id and t.key = g.key),
			disabled as (delete from flag_environments t using given g where t.tenant_id = g.tenant_id and t.key = g.key
				returning t.*, g.recorded),
			e as (`+endEnvironmentSpans+`),
			r as (delete from flag_rules t using given g where t.tenant_id = g.tenant_id and t.key = g.key),
			f as (delete from flag_fallthroughs t using given g where t.tenant_id = g.tenant_id and t.key = g.key)
		delete from flags t using given g where t.tenant_id = g.tenant_id and t.key = g.key`)

	insertVariation = projections.NewStatement(
		"tenant_id text, key text, id text, added bigint, ordinal int, name text, value json, description text, weight "+
			"bigint",
		`insert into flag_variations (tenant_id, key, id, added, ordinal, name, value, description, weight)
		select tenant_id, key, id, added, ordinal, name, value, description, weight from given`,
	)
	updateVariation = projections.NewStatement(
		"tenant_id text, key text, id text, name text, value json, description text, weight bigint",
		`update flag_variations v set name = coalesce(g.name, v.name), value = coalesce(g.value, v.value), description =
			coalesce(g.description, v.description),
			weight = coalesce(g.weight, v.weight) from given g where v.tenant_id = g.tenant_id and v.key = g.key and v.id = g.id`,
	)
	removeVariation = projections.NewStatement("tenant_id text, key text, id text",
		`delete from flag_variations v using given g where v.tenant_id = g.tenant_id and v.key = g.key and v.id = g.id`)
	orderVariations = projections.NewStatement(
		"tenant_id text, key text, version bigint, ids text[]",
		`, o as materialized (select g.tenant_id, g.key, g.version, o.id, o.ordinal
			from given g, unnest(g.ids) with ordinality o (id, ordinal))
		update flag_variations v set added = o.version, ordinal = o.ordinal from o where v.tenant_id = o.tenant_id
			and v.key = o.key and v.id = o.id`,
	)

	keepRules = projections.NewStatement(
		"tenant_id text, key text, environment_id text, ids text[]",
		`delete from flag_rules r using given g where r.tenant_id = g.tenant_id and r.key = g.key
			and r.environment_id = g.environment_id and r.id <> all(g.ids)`,
	)
	addRule = projections.NewStatement(
		"tenant_id text, key text, environment_id text, id text, rule json",
		`insert into flag_rules (tenant_id, key, environment_id, id, position, rule)
			select tenant_id, key, environment_id, id, 0, rule from given
		on conflict (tenant_id, key, environment_id, id) do update set rule = excluded.rule`,
	)
	changeRule = projections.NewStatement("tenant_id text, key text, environment_id text, id text, rule json",
		`update flag_rules r set rule = g.rule from given g
		where r.tenant_id = g.tenant_id and r.key = g.key and r.environment_id = g.environment_id and r.id = g.id`)
	orderRules = projections.NewStatement(
		"tenant_id text, key text, environment_id text, ids text[]",
		`, o as materialized (select g.tenant_id, g.key, g.environment_id, o.id, o.position
			from given g, unnest(g.ids) with ordinality o (id, position))
		update flag_rules r set position = o.position from o
		where r.tenant_id = o.tenant_id and r.key = o.key and r.environment_id = o.environment_id and r.id = o.id
			and r.position <> o.position`,
	)

	addFallthrough = projections.NewStatement(
		"tenant_id text, key text, environment_id text, serve json",
		`insert into flag_fallthroughs (tenant_id, key, environment_id, serve) select tenant_id, key, environment_id, serve
			from given
		on conflict (tenant_id, key, environment_id) do update set serve = excluded.serve`,
	)
	removeFallthrough = projections.NewStatement(
		"tenant_id text, key text, environment_id text",
		`delete from flag_fallthroughs t using given g where t.tenant_id = g.tenant_id and t.key = g.key
			and t.environment_id = g.environment_id`,
	)
)
