// Package evaluationtest provides facts of flags for tests, some fixed and some drawn.
package evaluationtest

import (
	"encoding/json"
	"strings"

	"flagledger/events"
)

// Production is the environment of the facts below.
var Production = events.EnvironmentRef{ID: "e1", Name: "production"}

// Made returns the fact that creates a flag.
func Made(kind events.FlagType, value string, variations ...events.Variation) events.FlagCreated {
	return events.FlagCreated{Key: "k", Type: kind, DefaultValue: []byte(value), Salt: "s", Variations: variations}
}

// Choice returns a variation.
func Choice(id, value string, weight events.Weight) events.Variation {
	return events.Variation{ID: id, Name: "name of " + id, Value: []byte(value), Weight: weight}
}

// Ruled replaces all rules in Production.
func Ruled(list ...events.Rule) events.RulesChanged { return RulesIn(Production, list...) }

// RulesIn replaces all rules in an environment.
func RulesIn(environment events.EnvironmentRef, list ...events.Rule) events.RulesChanged {
	c := events.ChangeRules(environment, nil, list)
	if c.Order == nil {
		c.Order = &events.Change[[]string]{}
	}
	return c
}

// When returns a rule for people with a plan.
func When(id, plan string, s events.Serve) events.Rule {
	return events.Rule{
		ID:         id,
		Salt:       "salt of " + id,
		Serve:      s,
		Conditions: []events.Condition{{Attribute: "plan", Op: events.In, Values: Raw(`["` + plan + `"]`)}},
	}
}

// Otherwise sets the fallthrough in Production.
func Otherwise(s events.Serve) events.FallthroughChanged {
	return events.FallthroughChanged{Environment: Production, To: &s}
}

// Rolled serves a percentage rollout.
func Rolled(bucketBy string, shares ...events.Share) events.Serve {
	return events.Serve{Rollout: shares, BucketBy: bucketBy}
}

// Half returns a share of 50 %.
func Half(id string) events.Share { return events.Share{VariationID: id, Weight: 50_000} }

// Raw reads a list of JSON values.
func Raw(list string) []json.RawMessage {
	var values []json.RawMessage
	if err := json.Unmarshal([]byte(list), &values); err != nil {
		panic(err)
	}
	return values
}

// Attributes reads the attributes of a context, numbers with parse.
func Attributes[N any](text string, parse func([]byte) N) map[string]any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		panic(err)
	}
	return exact(object, parse).(map[string]any)
}

func exact[N any](value any, parse func([]byte) N) any {
	switch value := value.(type) {
	case json.Number:
		return parse([]byte(value))
	case []any:
		for i := range value {
			value[i] = exact(value[i], parse)
		}
	case map[string]any:
		for name := range value {
			value[name] = exact(value[name], parse)
		}
	}
	return value
}
