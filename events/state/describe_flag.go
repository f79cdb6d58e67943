package state

import (
	"encoding/json"

	"flagledger/events"
)

func describeFlag(e events.Recorded) (Description, error) {
	_, key := events.ParseFlagStream(e.Stream)
	fact, ok := e.Fact.(events.FlagFact)
	if !ok || key == "" {
		return Description{}, notOfStream(e)
	}
	entry := Description{ResourceType: "flag", ResourceID: key, Part: whole}
	changes := Changes{}
	entry.Changes = changes
	switch fact := fact.(type) {
	case events.FlagCreated:
		entry.Name = &fact.Name
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
		if fact.Permanent {
			changes.add("permanent", nil, true)
		}
		if fact.ClientSide {
			changes.add("clientSide", nil, true)
		}
		if fact.Owner != "" {
			changes.add("owner", nil, fact.Owner)
		}
		if len(fact.Links) > 0 {
			changes.add("links", nil, fact.Links)
		}
		if fact.OffServes != events.OffServesValue {
			changes.add("offServes", nil, fact.OffServes.Text())
		}
		for _, v := range fact.Variations {
			changes.add("variations."+v.ID, nil, v)
		}
	case events.FlagUpdated:
		entry.Name = to(fact.Name)
		addChange(changes, "name", fact.Name)
		addChange(changes, "defaultValue", fact.DefaultValue)
		addChange(changes, "description", fact.Description)
		if c := fact.Tags; c != nil {
			changes.add("tags", orEmpty(c.From), orEmpty(c.To))
		}
		if c := fact.ProjectID; c != nil {
			changes.add("projectId", orNull(c.From), orNull(c.To))
		}
		addChange(changes, "permanent", fact.Permanent)
		addChange(changes, "clientSide", fact.ClientSide)
		if c := fact.Owner; c != nil {
			changes.add("owner", orNull(c.From), orNull(c.To))
		}
		if c := fact.Links; c != nil {
			changes.add("links", orEmpty(c.From), orEmpty(c.To))
		}
		if c := fact.OffServes; c != nil {
			changes.add("offServes", c.From.Text(), c.To.Text())
		}
	case events.FlagStatusChanged:
		changes.add("status", fact.From, fact.To)
	case events.FlagEnabled:
		entry.Environment = &fact.Environment.Name
		changes.add("enabled", false, true)
	case events.FlagDisabled:
		entry.Environment = &fact.Environment.Name
		changes.add("enabled", true, false)
	case events.VariationAdded:
		changes.add("variations."+fact.Variation.ID, nil, fact.Variation)
	case events.VariationUpdated:
		prefix := "variations." + fact.ID + "."
		addChange(changes, prefix+"name", fact.Name)
		addChange(changes, prefix+"value", fact.Value)
		addChange(changes, prefix+"description", fact.Description)
		addChange(changes, prefix+"weight", fact.Weight)
	case events.VariationRemoved:
		changes.add("variations."+fact.Variation.ID, fact.Variation, nil)
	case events.RulesChanged:
		entry.Environment = &fact.Environment.Name
		addRules(changes, fact)
	case events.FallthroughChanged:
		entry.Environment = &fact.Environment.Name
		changes.add("fallthrough", shownServe(fact.From), shownServe(fact.To))
	case events.PrerequisitesChanged:
		entry.Environment = &fact.Environment.Name
		changes.add("prerequisites", orEmpty(fact.From), orEmpty(fact.To))
	case events.FlagDeleted:
		entry.Gone = "name"
	case events.FlagReverted:
		if fact.Environment != nil {
			entry.Environment = &fact.Environment.Name
		}
		addReverted(changes, fact)
	}
	return entry, nil
}

// addRules names each rule that was added, removed or changed, and the order of all if that changed.
func addRules(d Changes, fact events.RulesChanged) {
	for _, rule := range fact.Added {
		d.add("rules."+rule.ID, nil, shownRuleOf(rule))
	}
	for _, rule := range fact.Removed {
		d.add("rules."+rule.ID, shownRuleOf(rule), nil)
	}
	for _, c := range fact.Changed {
		d.add("rules."+c.To.ID, shownRuleOf(c.From), shownRuleOf(c.To))
	}
	if c := fact.Order; c != nil {
		d.add("rules.order", orEmpty(c.From), orEmpty(c.To))
	}
}

// addReverted names what a flag was brought back to; all that changed stands in the facts before.
func addReverted(d Changes, fact events.FlagReverted) {
	d.add("version", nil, fact.Version)
	if !fact.At.IsZero() {
		d.add("at", nil, fact.At)
	}
	addChange(d, "variations.order", fact.Variations)
}

// orNull returns an id, or nil if it is empty.
func orNull(id string) any {
	if id == "" {
		return nil
	}
	return id
}

// shownRule is a rule without its salt, as the API returns it.
type shownRule struct {
	ID         string           `json:"id"`
	Name       string           `json:"name"`
	Conditions []shownCondition `json:"conditions"`
	Serve      *events.Serve    `json:"serve,omitempty"` // nil in a segment
}

type shownCondition struct {
	Attribute string            `json:"attribute,omitempty"`
	Op        events.Operator   `json:"op"`
	Values    []json.RawMessage `json:"values"`
	Negate    bool              `json:"negate"`
}

func shownRuleOf(r events.Rule) shownRule {
	shown := shownRule{
		ID:         r.ID,
		Name:       r.Name,
		Conditions: make([]shownCondition, len(r.Conditions)),
	}
	if r.Serves() {
		shown.Serve = shownServe(&r.Serve)
	}
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
