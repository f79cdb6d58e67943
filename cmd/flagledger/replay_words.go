package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"flagledger/events"
)

const (
	maxSummary = 100 // characters of a fact's summary
	maxValue   = 40  // of a value in it
)

// summary tells in a few words what a fact did, beside its name. --diff tells all.
func (r *replay) summary(e events.Recorded) string {
	switch fact := e.Fact.(type) {
	case events.FlagFact:
		return r.flagSummary(fact)
	case events.ProjectFact:
		return projectSummary(fact)
	case events.TenantFact:
		return tenantSummary(fact)
	}
	return ""
}

func (r *replay) flagSummary(fact events.FlagFact) string {
	switch fact := fact.(type) {
	case events.FlagCreated:
		return string(fact.Type) + ", default " + brief(fact.DefaultValue)
	case events.FlagUpdated:
		return fields(changed("name", fact.Name), changed("default", fact.DefaultValue),
			changed("description", fact.Description), changed("tags", tags(fact.Tags)), changed("project", fact.ProjectID),
			changed("permanent", fact.Permanent))
	case events.FlagStatusChanged:
		return string(fact.From) + " → " + string(fact.To)
	case events.FlagEnabled, events.FlagDisabled, events.FlagDeleted:
	case events.VariationAdded:
		return variationSummary(fact.Variation)
	case events.VariationUpdated:
		return r.nameText(fact.ID) + ": " + fields(changed("name", fact.Name), changed("value", fact.Value),
			changed("description", fact.Description),
			changed("weight", fact.Weight))
	case events.VariationRemoved:
		return variationSummary(fact.Variation)
	case events.RulesChanged:
		return rulesSummary(fact)
	case events.FallthroughChanged:
		return r.served(fact.From) + " → " + r.served(fact.To)
	case events.FlagReverted:
		return fmt.Sprintf("to version %d", fact.Version)
	}
	return ""
}

func variationSummary(v events.Variation) string {
	return joined(v.Name+" = "+brief(v.Value), "weight "+brief(v.Weight))
}

func rulesSummary(fact events.RulesChanged) string {
	var words []string
	note := func(sign string, rule events.Rule) { words = append(words, sign+cmp.Or(rule.Name, "rule "+rule.ID)) }
	for _, rule := range fact.Added {
		note("+ ", rule)
	}
	for _, rule := range fact.Removed {
		note("- ", rule)
	}
	for _, change := range fact.Changed {
		note("~ ", change.To)
	}
	if len(words) == 0 {
		words = append(words, "in another order")
	}
	return joined(words...)
}

// served tells what a rule or a fallthrough serves.
func (r *replay) served(s *events.Serve) string {
	switch {
	case s == nil:
		return "not set"
	case s.VariationID != "":
		return cmp.Or(r.variations[s.VariationID], s.VariationID)
	case len(s.Rollout) > 0:
		shares := make([]string, len(s.Rollout))
		for i, share := range s.Rollout {
			shares[i] = cmp.Or(r.variations[share.VariationID], share.VariationID) + " " + brief(share.Weight)
		}
		return strings.Join(shares, " / ") + " by " + cmp.Or(s.BucketBy, events.TargetingKey)
	}
	return brief(s.Value)
}

func projectSummary(fact events.ProjectFact) string {
	switch fact := fact.(type) {
	case events.ProjectCreated:
		return joined(brief(fact.Name), fact.Color)
	case events.ProjectUpdated:
		return fields(changed("name", fact.Name), changed("description", fact.Description), changed("color", fact.Color))
	case events.ProjectDeleted:
	}
	return ""
}

func tenantSummary(fact events.TenantFact) string {
	switch fact := fact.(type) {
	case events.TenantCreated:
		return joined(brief(fact.Name), "plan "+string(fact.Plan))
	case events.TenantUpdated:
		return joined(fields(changed("name", fact.Name)), contactSummary(fact.Contact))
	case events.TenantDeleted, events.EnvironmentAdded, events.EnvironmentDeleted, events.MemberRemoved:
	case events.MemberAdded:
		return "as " + string(fact.Role)
	case events.MemberInvited:
		return "as " + string(fact.Role)
	case events.MemberJoined:
		return "as " + string(fact.Role)
	case events.MemberRoleChanged:
		return string(fact.From) + " → " + string(fact.To)
	case events.OAuthClientCreated:
		scopes := make([]string, len(fact.Scopes))
		for i, scope := range fact.Scopes {
			scopes[i] = string(scope)
		}
		return joined(scopes...)
	case events.OAuthSecretRotated:
		return "the previous one works until " + fact.PreviousUntil.UTC().Format(events.RecordedFormat)
	case events.OAuthClientDeleted:
	case events.SubscriptionChanged:
		from, to := fact.From, fact.To
		return joined(different("plan", from.Plan, to.Plan).text(), different("status", from.Status, to.Status).text(),
			different("cycle", from.BillingCycle, to.BillingCycle).text())
	}
	return ""
}

func contactSummary(changed []events.ContactField) string {
	names := make([]string, len(changed))
	for i, field := range changed {
		names[i] = string(field)
	}
	return joined(names...)
}

// joined joins words that are not empty.
func joined(words ...string) string {
	var some []string
	for _, word := range words {
		if word != "" {
			some = append(some, word)
		}
	}
	return strings.Join(some, ", ")
}

// tags are never null, though facts may have it in place of none.
func tags(c *events.Change[[]string]) *events.Change[[]string] {
	if c == nil {
		return nil
	}
	return &events.Change[[]string]{From: append([]string{}, c.From...), To: append([]string{}, c.To...)}
}

// fieldChange is the change of a field in a few words; it has no name where the field did not change.
type fieldChange struct{ name, from, to string }

func changed[T any](name string, c *events.Change[T]) fieldChange {
	if c == nil {
		return fieldChange{}
	}
	return fieldChange{name, brief(c.From), brief(c.To)}
}

func different[T comparable](name string, from, to T) fieldChange {
	if from == to {
		return fieldChange{}
	}
	return fieldChange{name, brief(from), brief(to)}
}

func (c fieldChange) text() string {
	if c.name == "" {
		return ""
	}
	return c.name + " " + c.from + " → " + c.to
}

// fields tells what changed: the values of one field, or the names of several.
func fields(changes ...fieldChange) string {
	changes = slices.DeleteFunc(changes, func(c fieldChange) bool { return c.name == "" })
	if len(changes) == 1 {
		return changes[0].text()
	}
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = c.name
	}
	return joined(names...)
}

// brief is the beginning of a value in JSON.
func brief(v any) string { return shortened(jsonText(v), maxValue) }
