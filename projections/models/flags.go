package models

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
)

var flagTables = []string{"flags", "flag_variations", "flag_environments", "flag_rules", "flag_fallthroughs"}

var flags = projections.Projection{
	Name:    "flags",
	Version: 2, // with rules and fallthroughs
	Tables:  flagTables,
	Schema: `
create table flags (
    tenant_id     text        not null,
    key           text        not null,
    id            text        not null,
    name          text        not null,
    type          text        not null,
    default_value json        not null,
    description   text        not null,
    tags          text[]      not null,
    project_id    text,
    status        text        not null,
    version       bigint      not null,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    primary key (tenant_id, key)
);
create index on flags (project_id) where project_id is not null; -- not after tenant_id: no plan shall prefer it to the key
create table flag_variations (
    tenant_id   text   not null,
    key         text   not null,
    id          text   not null,
    added       bigint not null, -- the flag's version with it: the order of variations
    ordinal     int    not null, -- among those that were added at once
    name        text   not null,
    value       json   not null,
    description text   not null,
    weight      bigint not null, -- thousandths
    primary key (tenant_id, key, id)
);
create table flag_environments (
    tenant_id      text not null,
    key            text not null,
    environment_id text not null, -- the flag is enabled in it
    primary key (tenant_id, key, environment_id)
);
create table flag_rules (
    tenant_id      text not null,
    key            text not null,
    environment_id text not null,
    rules          json not null, -- the whole list, as facts hold it
    primary key (tenant_id, key, environment_id)
);
create table flag_fallthroughs (
    tenant_id      text not null,
    key            text not null,
    environment_id text not null,
    serve          json not null, -- as facts hold it
    primary key (tenant_id, key, environment_id)
);`,
	FactPrefixes: []string{"flag."},
	Apply:        applyFlag,
}

func applyFlag(b *pgx.Batch, e events.Recorded) error {
	tenant, key := events.ParseFlagStream(e.Stream)
	fact, ok := e.Fact.(events.FlagFact)
	if !ok || key == "" {
		return fmt.Errorf("%s in stream %s is no fact of a flag", e.Name, e.Stream)
	}
	switch fact := fact.(type) {
	case events.FlagCreated:
		b.Queue(`insert into flags
				(tenant_id, key, id, name, type, default_value, description, tags, project_id, status, version, created_at, updated_at)
				values ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), 'active', $10, $11, $11)`,
			tenant, key, fact.ID, fact.Name, fact.Type, fact.DefaultValue, fact.Description, orEmpty(fact.Tags), fact.ProjectID, e.Revision, e.Time)
		for i, v := range fact.Variations {
			addVariation(b, tenant, key, e.Revision, i, v)
		}
		return nil
	case events.FlagUpdated:
		b.Queue(`update flags set name = coalesce($3, name), default_value = coalesce($4, default_value), description = coalesce($5, description),
				tags = coalesce($6, tags) where tenant_id = $1 and key = $2`,
			tenant, key, to(fact.Name), toJSON(fact.DefaultValue), to(fact.Description), toTags(fact.Tags))
	case events.FlagStatusChanged:
		b.Queue(`update flags set status = $3 where tenant_id = $1 and key = $2`, tenant, key, fact.To)
	case events.FlagEnabled:
		b.Queue(`insert into flag_environments (tenant_id, key, environment_id) values ($1, $2, $3) on conflict do nothing`, tenant, key, fact.Environment.ID)
	case events.FlagDisabled:
		b.Queue(`delete from flag_environments where tenant_id = $1 and key = $2 and environment_id = $3`, tenant, key, fact.Environment.ID)
	case events.VariationAdded:
		addVariation(b, tenant, key, e.Revision, 0, fact.Variation)
	case events.VariationUpdated:
		b.Queue(`update flag_variations set name = coalesce($4, name), value = coalesce($5, value), description = coalesce($6, description),
				weight = coalesce($7, weight) where tenant_id = $1 and key = $2 and id = $3`,
			tenant, key, fact.ID, to(fact.Name), toJSON(fact.Value), to(fact.Description), to(fact.Weight))
	case events.VariationRemoved:
		b.Queue(`delete from flag_variations where tenant_id = $1 and key = $2 and id = $3`, tenant, key, fact.Variation.ID)
	case events.RulesChanged:
		if err := keepJSON(b, "flag_rules", "rules", tenant, key, fact.Environment, fact.To, len(fact.To) > 0); err != nil {
			return err
		}
	case events.FallthroughChanged:
		if err := keepJSON(b, "flag_fallthroughs", "serve", tenant, key, fact.Environment, fact.To, fact.To != nil); err != nil {
			return err
		}
	case events.FlagDeleted:
		for _, table := range flagTables {
			b.Queue(`delete from `+table+` where tenant_id = $1 and key = $2`, tenant, key)
		}
		return nil
	}
	b.Queue(`update flags set version = $3, updated_at = $4 where tenant_id = $1 and key = $2`, tenant, key, e.Revision, e.Time)
	return nil
}

// keepJSON keeps what holds in one environment, or drops it where nothing does.
func keepJSON(b *pgx.Batch, table, column, tenant, key string, environment events.EnvironmentRef, v any, holds bool) error {
	if !holds {
		b.Queue(`delete from `+table+` where tenant_id = $1 and key = $2 and environment_id = $3`, tenant, key, environment.ID)
		return nil
	}
	text, err := events.Marshal(v)
	if err != nil {
		return err
	}
	b.Queue(`insert into `+table+` (tenant_id, key, environment_id, `+column+`) values ($1, $2, $3, $4)
			on conflict (tenant_id, key, environment_id) do update set `+column+` = excluded.`+column,
		tenant, key, environment.ID, text)
	return nil
}

func addVariation(b *pgx.Batch, tenant, key string, added events.Revision, ordinal int, v events.Variation) {
	b.Queue(`insert into flag_variations (tenant_id, key, id, added, ordinal, name, value, description, weight)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		tenant, key, v.ID, added, ordinal, v.Name, v.Value, v.Description, int64(v.Weight))
}

// to is the new value of a field that changed, null for one that did not.
func to[T any](c *events.Change[T]) *T {
	if c == nil {
		return nil
	}
	return &c.To
}

// toJSON hands on the bytes of a JSON value: as a pointer it would be marshaled once more, and its spelling changed.
func toJSON(c *events.Change[json.RawMessage]) any {
	if c == nil {
		return nil
	}
	return []byte(c.To)
}

func toTags(c *events.Change[[]string]) any {
	if c == nil {
		return nil
	}
	return orEmpty(c.To)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
