package models

import (
	"encoding/json"
	"fmt"
	"slices"

	"flagledger/events"
	"flagledger/projections"
)

var flags = projections.Projection{
	Name:    "flags",
	Version: 10, // with recorded times alone
	Tables: slices.Concat([]string{"flags", "flag_variations", "flag_environments", "flag_rules", "flag_fallthroughs"},
		flagSpanTables, []string{"flag_states"}),
	Schema: `
create table flags (
    tenant_id     text        not null,
    key           text collate "C" not null, -- lists are in its order
    id            text        not null,
    name          text        not null,
    type          text        not null,
    default_value json        not null,
    description   text        not null,
    tags          text[]      not null,
    project_id    text,
    permanent     boolean     not null,
    status        text        not null,
    salt          text        not null,
    version       bigint      not null,
    created_version bigint    not null, -- with which this life of the key began
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    primary key (tenant_id, key)
);
create table flag_variations (
    tenant_id   text   not null,
    key         text collate "C" not null,
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
    key            text collate "C" not null,
    environment_id text not null, -- the flag is enabled in it
    primary key (tenant_id, key, environment_id)
);
create table flag_rules (
    tenant_id      text not null,
    key            text collate "C" not null,
    environment_id text not null,
    id             text not null,
    position       int  not null, -- from 1
    rule           json not null, -- as facts hold it
    primary key (tenant_id, key, environment_id, id)
);
create table flag_fallthroughs (
    tenant_id      text not null,
    key            text collate "C" not null,
    environment_id text not null,
    serve          json not null, -- as facts hold it
    primary key (tenant_id, key, environment_id)
);` + flagSpans + flagStatesSchema,
	Indexes: `
create index if not exists flags_project on flags (project_id) where project_id is not null; -- not after tenant_id: no plan shall prefer it to the key` +
		flagSpansIndexes + flagStatesIndexes,
	FactPrefixes: []string{"flag."},
	Apply:        applyFlag,
}

func applyFlag(b *projections.Batch, e events.Recorded) error {
	tenant, key := events.ParseFlagStream(e.Stream)
	fact, ok := e.Fact.(events.FlagFact)
	if !ok || key == "" {
		return fmt.Errorf("%s in stream %s does not belong to a flag", e.Name, e.Stream)
	}
	if err := changeFlag(b, tenant, key, e, fact); err != nil {
		return err
	}
	b.Insert(flagVersionsTable, tenant, key, e.Revision, e.At)
	storeState(b, tenant, key, e)
	return nil
}

// changeFlag updates the rows of a flag for a fact.
func changeFlag(b *projections.Batch, tenant, key string, e events.Recorded, fact events.FlagFact) error {
	switch fact := fact.(type) {
	case events.FlagCreated:
		b.Queue(createFlag, tenant, key, fact.ID, fact.Name, fact.Type, fact.DefaultValue, fact.Description,
			orEmpty(fact.Tags), fact.ProjectID, fact.Permanent, fact.Salt, e.Revision, e.At)
		for i, v := range fact.Variations {
			addVariation(b, tenant, key, e.Revision, i, v)
		}
		return nil
	case events.FlagUpdated:
		b.Queue(updateFlag, tenant, key, to(fact.Name), toJSON(fact.DefaultValue), to(fact.Description), toTags(fact.Tags),
			to(fact.ProjectID), to(fact.Permanent), nil, e.Revision, e.At)
	case events.FlagStatusChanged:
		b.Queue(updateFlag, tenant, key, nil, nil, nil, nil, nil, nil, fact.To, e.Revision, e.At)
	case events.FlagEnabled:
		b.Queue(enableFlag, tenant, key, fact.Environment.ID, e.Revision, e.At)
	case events.FlagDisabled:
		b.Queue(disableFlag, tenant, key, fact.Environment.ID, e.At)
	case events.VariationAdded:
		addVariation(b, tenant, key, e.Revision, 0, fact.Variation)
	case events.VariationUpdated:
		b.Queue(updateVariation, tenant, key, fact.ID, to(fact.Name), toJSON(fact.Value), to(fact.Description),
			to(fact.Weight))
	case events.VariationRemoved:
		b.Queue(removeVariation, tenant, key, fact.Variation.ID)
	case events.RulesChanged:
		if err := changeRules(b, tenant, key, fact); err != nil {
			return err
		}
	case events.FallthroughChanged:
		if err := setFallthrough(b, tenant, key, fact); err != nil {
			return err
		}
	case events.FlagReverted:
		if order := fact.Variations; order != nil {
			b.Queue(orderVariations, tenant, key, e.Revision, order.To)
		}
	case events.FlagDeleted:
		b.Queue(endFlagSpans, tenant, key, e.At)
		b.Queue(deleteFlag, tenant, key, e.At)
		return nil
	}
	// This may run after the flag was deleted and created again.
	if storesState(e) {
		b.Queue(touchFlag, tenant, key, e.Revision, e.At)
	}
	b.QueueLast(e.Stream, touchFlag, tenant, key, e.Revision, e.At)
	return nil
}

// changeRules does to rows what events.ApplyRules does to a list.
func changeRules(b *projections.Batch, tenant, key string, change events.RulesChanged) error {
	environment := change.Environment.ID
	if change.Order != nil {
		b.Queue(keepRules, tenant, key, environment, orEmpty(change.Order.To))
		for _, rule := range change.Added {
			text, err := events.Marshal(rule)
			if err != nil {
				return err
			}
			b.Queue(addRule, tenant, key, environment, rule.ID, text)
		}
		b.Queue(orderRules, tenant, key, environment, orEmpty(change.Order.To))
	}
	for _, changed := range change.Changed {
		text, err := events.Marshal(changed.To)
		if err != nil {
			return err
		}
		b.Queue(changeRule, tenant, key, environment, changed.To.ID, text)
	}
	return nil
}

func setFallthrough(b *projections.Batch, tenant, key string, change events.FallthroughChanged) error {
	if change.To == nil {
		b.Queue(removeFallthrough, tenant, key, change.Environment.ID)
		return nil
	}
	text, err := events.Marshal(change.To)
	if err != nil {
		return err
	}
	b.Queue(addFallthrough, tenant, key, change.Environment.ID, text)
	return nil
}

func addVariation(b *projections.Batch, tenant, key string, added events.Revision, ordinal int, v events.Variation) {
	b.Queue(insertVariation, tenant, key, v.ID, added, ordinal, v.Name, v.Value, v.Description, int64(v.Weight))
}

// to returns the new value of a changed field; nil for an unchanged one.
func to[T any](c *events.Change[T]) *T {
	if c == nil {
		return nil
	}
	return &c.To
}

// toJSON returns the bytes of a JSON value: marshaling a pointer again would change their spelling.
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
