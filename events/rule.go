package events

import "encoding/json"

// Rule serves those who meet all of its conditions something of their own. The first rule of an environment that matches decides.
type Rule struct {
	ID         string      `json:"id"`
	Name       string      `json:"name,omitempty"`
	Salt       string      `json:"salt"` // of its rollout, for the life of the rule
	Conditions []Condition `json:"conditions"`
	Serve      Serve       `json:"serve"`
}

// Condition compares an attribute with values, of which one must fit.
type Condition struct {
	Attribute string            `json:"attribute"` // targetingKey, or a path into the attributes: a.b
	Op        Operator          `json:"op"`
	Values    []json.RawMessage `json:"values,omitempty"` // strings, numbers and booleans
	Negate    bool              `json:"negate,omitempty"`
}

// TargetingKey is the attribute that names whom a flag is evaluated for.
const TargetingKey = "targetingKey"

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
	Exists        Operator = "exists" // takes no values
)

// Serve is what a rule or a fallthrough serves: one of a variation, a value of its own, and a rollout.
type Serve struct {
	VariationID string          `json:"variationId,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	Rollout     []Share         `json:"rollout,omitempty"`
	BucketBy    string          `json:"bucketBy,omitempty"` // an attribute, as conditions name it; targetingKey where empty
}

// Share is a variation's part of a rollout, relative to the others'.
type Share struct {
	VariationID string `json:"variationId"`
	Weight      Weight `json:"weight"`
}

// Variations are the ids of the variations that it may serve.
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

// RulesChanged replaces the rules of an environment: the lists are whole and in order.
type RulesChanged struct {
	Environment EnvironmentRef `json:"environment"`
	From        []Rule         `json:"from"`
	To          []Rule         `json:"to"`
}

// FallthroughChanged replaces what an environment serves to those whom no rule matches; nil leaves that to the flag.
type FallthroughChanged struct {
	Environment EnvironmentRef `json:"environment"`
	From        *Serve         `json:"from"`
	To          *Serve         `json:"to"`
}

func (RulesChanged) StoredName() string       { return "flag.rules_changed" }
func (FallthroughChanged) StoredName() string { return "flag.fallthrough_changed" }

func (RulesChanged) flagFact()       {}
func (FallthroughChanged) flagFact() {}
