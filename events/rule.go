package events

import (
	"encoding/json"
	"slices"
)

// Rule serves something to contexts that match all its conditions. The first matching rule of an environment decides.
type Rule struct {
	ID         string      `json:"id"`
	Name       string      `json:"name,omitempty"`
	Salt       string      `json:"salt,omitempty"` // for its rollout; never changes; empty in a segment
	Conditions []Condition `json:"conditions"`
	Serve      Serve       `json:"serve,omitzero"` // nothing in a segment
}

// Serves reports whether the rule serves something: a segment's does not.
func (r Rule) Serves() bool {
	return r.Serve.VariationID != "" || r.Serve.Value != nil || r.Serve.Rollout != nil
}

// Condition compares an attribute with values. It matches if one of them does.
type Condition struct {
	// Attribute is targetingKey, a path into the attributes (a.b) or a reserved one; empty for InSegment.
	Attribute string            `json:"attribute,omitempty"`
	Op        Operator          `json:"op"`
	Values    []json.RawMessage `json:"values,omitempty"` // strings, numbers and booleans
	Negate    bool              `json:"negate,omitempty"`
}

// TargetingKey is the attribute that identifies the unit, usually a person, that a flag is evaluated for.
const TargetingKey = "targetingKey"

// Reserved attributes begin with ReservedPrefix. They are about the evaluation and never read from its context.
const (
	ReservedPrefix       = "$"
	EnvironmentAttribute = "$environment" // the name of the environment
	NowAttribute         = "$now"         // the time of the evaluation
)

// Operator is how a condition compares.
type Operator string

// The operators.
const (
	In            Operator = "in"
	Contains      Operator = "contains"
	StartsWith    Operator = "starts_with"
	EndsWith      Operator = "ends_with"
	Matches       Operator = "matches" // RE2
	Greater       Operator = "gt"
	GreaterEqual  Operator = "gte"
	Less          Operator = "lt"
	LessEqual     Operator = "lte"
	Before        Operator = "before" // RFC 3339
	After         Operator = "after"
	SemverEqual   Operator = "semver_eq"
	SemverGreater Operator = "semver_gt"
	SemverAtLeast Operator = "semver_gte"
	SemverLess    Operator = "semver_lt"
	SemverAtMost  Operator = "semver_lte"
	Exists        Operator = "exists"     // takes no values
	InSegment     Operator = "in_segment" // takes keys of segments
)

// Serve is what a rule or a fallthrough serves: exactly one of a variation, a value and a rollout.
type Serve struct {
	VariationID string          `json:"variationId,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	Rollout     []Share         `json:"rollout,omitempty"`
	// BucketBy is an attribute, named as in a condition; empty for targetingKey.
	BucketBy string `json:"bucketBy,omitempty"`
}

// Share is a variation's part of a rollout, in proportion to the sum of all weights.
type Share struct {
	VariationID string `json:"variationId"`
	Weight      Weight `json:"weight"`
}

// Variations returns the ids of the variations that may be served.
func (s Serve) Variations() []string {
	var ids []string
	if s.VariationID != "" {
		ids = append(ids, s.VariationID)
	}
	for _, share := range s.Rollout {
		ids = append(ids, share.VariationID)
	}
	return ids
}

// RulesChanged holds the changes of an environment's rules; ApplyRules applies them. Version 1 held both complete
// lists.
type RulesChanged struct {
	Environment EnvironmentRef `json:"environment"`
	Added       []Rule         `json:"added,omitempty"`
	Removed     []Rule         `json:"removed,omitempty"`
	Changed     []Change[Rule] `json:"changed,omitempty"` // From and To have the same id
	// Order has the ids of all rules, or is nil if ids and order did not change.
	Order *Change[[]string] `json:"order,omitempty"`
}

// ChangeRules returns the fact that turns one list of rules into another. No two rules of a list may have the same id.
func ChangeRules(environment EnvironmentRef, before, after []Rule) RulesChanged {
	c := RulesChanged{Environment: environment}
	was, is := rulesByID(before), rulesByID(after)
	for _, rule := range after {
		if old, ok := was[rule.ID]; !ok {
			c.Added = append(c.Added, rule)
		} else if !StoredEqual(old, rule) {
			c.Changed = append(c.Changed, Change[Rule]{old, rule})
		}
	}
	for _, rule := range before {
		if _, ok := is[rule.ID]; !ok {
			c.Removed = append(c.Removed, rule)
		}
	}
	if from, to := ruleIDs(before), ruleIDs(after); !slices.Equal(from, to) {
		c.Order = &Change[[]string]{from, to}
	}
	return c
}

// Empty reports whether the rules do not change.
func (c RulesChanged) Empty() bool {
	return len(c.Added) == 0 && len(c.Removed) == 0 && len(c.Changed) == 0 && c.Order == nil
}

// ApplyRules returns the list after a change: it reuses elements of unchanged rules, and calls entry for new and
// changed ones. id returns the rule id of an element; an id that is neither in the list nor in the change is skipped.
func ApplyRules[T any](before []T, c RulesChanged, id func(T) string, entry func(Rule) T) []T {
	sent := rulesByID(c.Added)
	for _, changed := range c.Changed {
		sent[changed.To.ID] = changed.To
	}
	known := make(map[string]T, len(before))
	order := make([]string, len(before))
	for i, b := range before {
		order[i] = id(b)
		known[order[i]] = b
	}
	if c.Order != nil {
		order = c.Order.To
	}
	after := make([]T, 0, len(order))
	for _, ruleID := range order {
		if rule, ok := sent[ruleID]; ok {
			after = append(after, entry(rule))
		} else if b, ok := known[ruleID]; ok {
			after = append(after, b)
		}
	}
	return after
}

func rulesByID(list []Rule) map[string]Rule {
	byID := make(map[string]Rule, len(list))
	for _, rule := range list {
		byID[rule.ID] = rule
	}
	return byID
}

func ruleIDs(list []Rule) []string {
	ids := make([]string, len(list))
	for i, rule := range list {
		ids[i] = rule.ID
	}
	return ids
}

// rulesChangedV1 compares the two lists of version 1.
func rulesChangedV1(data []byte) ([]byte, error) {
	var v1 struct {
		Environment EnvironmentRef `json:"environment"`
		From        []Rule         `json:"from"`
		To          []Rule         `json:"to"`
	}
	if err := json.Unmarshal(data, &v1); err != nil {
		return nil, err
	}
	return Marshal(ChangeRules(v1.Environment, v1.From, v1.To))
}

// FallthroughChanged changes what an environment serves if no rule matches. Nil means that the flag decides.
type FallthroughChanged struct {
	Environment EnvironmentRef `json:"environment"`
	From        *Serve         `json:"from"`
	To          *Serve         `json:"to"`
}

func (RulesChanged) StoredName() string       { return "flag.rules_changed" }
func (FallthroughChanged) StoredName() string { return "flag.fallthrough_changed" }

func (RulesChanged) flagFact()       {}
func (FallthroughChanged) flagFact() {}
