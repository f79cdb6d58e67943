package models

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
)

var history = projections.Projection{
	Name:    "history",
	Version: 2, // each rule that changed has its own entry
	Tables:  []string{"history"},
	Schema: `
create table history (
    tenant_id   text        not null,
    key         text        not null,
    version     bigint      not null,
    id          uuid        not null,
    action      text        not null,
    changes     json        not null,
    environment text,
    actor_kind  text        not null,
    actor_id    text        not null,
    request_id  text        not null,
    reason      text        not null,
    at          timestamptz not null,
    primary key (tenant_id, key, version)
);`,
	FactPrefixes: []string{"flag."},
	Apply:        applyHistory,
}

// difference is what an entry of the history says of one field.
type difference struct {
	From any `json:"from"`
	To   any `json:"to"`
}

type differences map[string]difference

func (d differences) add(field string, from, to any) { d[field] = difference{from, to} }

func addChange[T any](d differences, field string, c *events.Change[T]) {
	if c != nil {
		d.add(field, c.From, c.To)
	}
}

func applyHistory(b *pgx.Batch, e events.Recorded) error {
	tenant, key := events.ParseFlagStream(e.Stream)
	fact, ok := e.Fact.(events.FlagFact)
	if !ok || key == "" {
		return fmt.Errorf("%s in stream %s is no fact of a flag", e.Name, e.Stream)
	}
	var action string
	var environment *string
	changes := differences{}
	switch fact := fact.(type) {
	case events.FlagCreated:
		action = "created"
		changes.add("name", nil, fact.Name)
		changes.add("type", nil, fact.Type)
		changes.add("defaultValue", nil, fact.DefaultValue)
		if fact.Description != "" {
			changes.add("description", nil, fact.Description)
		}
		if len(fact.Tags) > 0 {
			changes.add("tags", nil, fact.Tags)
		}
		if fact.ProjectID != "" {
			changes.add("projectId", nil, fact.ProjectID)
		}
		for _, v := range fact.Variations {
			changes.add("variations."+v.ID, nil, v)
		}
	case events.FlagUpdated:
		action = "updated"
		addChange(changes, "name", fact.Name)
		addChange(changes, "defaultValue", fact.DefaultValue)
		addChange(changes, "description", fact.Description)
		if c := fact.Tags; c != nil {
			changes.add("tags", orEmpty(c.From), orEmpty(c.To))
		}
		if c := fact.ProjectID; c != nil {
			changes.add("projectId", orNull(c.From), orNull(c.To))
		}
	case events.FlagStatusChanged:
		action = "status_changed"
		changes.add("status", fact.From, fact.To)
	case events.FlagEnabled:
		action, environment = "enabled", &fact.Environment.Name
		changes.add("enabled", false, true)
	case events.FlagDisabled:
		action, environment = "disabled", &fact.Environment.Name
		changes.add("enabled", true, false)
	case events.VariationAdded:
		action = "variation_added"
		changes.add("variations."+fact.Variation.ID, nil, fact.Variation)
	case events.VariationUpdated:
		action = "variation_updated"
		prefix := "variations." + fact.ID + "."
		addChange(changes, prefix+"name", fact.Name)
		addChange(changes, prefix+"value", fact.Value)
		addChange(changes, prefix+"description", fact.Description)
		addChange(changes, prefix+"weight", fact.Weight)
	case events.VariationRemoved:
		action = "variation_removed"
		changes.add("variations."+fact.Variation.ID, fact.Variation, nil)
	case events.RulesChanged:
		action, environment = "rules_changed", &fact.Environment.Name
		for _, rule := range fact.Added {
			changes.add("rules."+rule.ID, nil, shownRuleOf(rule))
		}
		for _, rule := range fact.Removed {
			changes.add("rules."+rule.ID, shownRuleOf(rule), nil)
		}
		for _, c := range fact.Changed {
			changes.add("rules."+c.To.ID, shownRuleOf(c.From), shownRuleOf(c.To))
		}
		if c := fact.Order; c != nil {
			changes.add("rules.order", orEmpty(c.From), orEmpty(c.To))
		}
	case events.FallthroughChanged:
		action, environment = "fallthrough_changed", &fact.Environment.Name
		changes.add("fallthrough", shownServe(fact.From), shownServe(fact.To))
	case events.FlagDeleted:
		action = "deleted"
	}
	text, err := events.Marshal(changes)
	if err != nil {
		return err
	}
	b.Queue(`insert into history
			(tenant_id, key, version, id, action, changes, environment, actor_kind, actor_id, request_id, reason, at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		tenant, key, e.Revision, e.ID, action, text, environment, e.Actor.Kind, e.Actor.ID, e.RequestID, e.Reason, e.Time)
	return nil
}

// orNull is an id, or null for none.
func orNull(id string) any {
	if id == "" {
		return nil
	}
	return id
}

// shownRule is a rule as callers see it: all its members, but not the salt.
type shownRule struct {
	ID         string           `json:"id"`
	Name       string           `json:"name"`
	Conditions []shownCondition `json:"conditions"`
	Serve      *events.Serve    `json:"serve"`
}

type shownCondition struct {
	Attribute string            `json:"attribute"`
	Op        events.Operator   `json:"op"`
	Values    []json.RawMessage `json:"values"`
	Negate    bool              `json:"negate"`
}

func shownRuleOf(r events.Rule) shownRule {
	shown := shownRule{ID: r.ID, Name: r.Name, Conditions: make([]shownCondition, len(r.Conditions)), Serve: shownServe(&r.Serve)}
	for i, c := range r.Conditions {
		c.Values = orEmpty(c.Values)
		shown.Conditions[i] = shownCondition(c)
	}
	return shown
}

func shownServe(s *events.Serve) *events.Serve {
	if s == nil || s.Rollout == nil || s.BucketBy != "" {
		return s
	}
	shown := *s
	shown.BucketBy = events.TargetingKey
	return &shown
}
