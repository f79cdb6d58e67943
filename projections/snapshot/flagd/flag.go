// Package flagd translates flags into definitions of flagd, whose OpenFeature providers evaluate them in process.
//
// A definition serves what the evaluation package does, or an error. A flag that it cannot be exact for has none.
package flagd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"flagledger/events"
	"flagledger/events/state"
)

// Support says whether flagd's providers can evaluate a flag in process, and the reason if not.
type Support struct {
	Supported bool
	Reason    string // empty if it is supported
}

// Supports reports whether a flag can be translated for an environment. All dialects can express the same flags.
func Supports(f *state.Flag, environmentID string) Support {
	if _, err := translate(f, environmentID, Strict); err != nil {
		return Support{Reason: err.Error()}
	}
	return Support{Supported: true}
}

// Variants returns the values that flagd's providers serve, by the names of their variants.
func Variants(f *state.Flag, environmentID string) map[string]json.RawMessage {
	d, err := translate(f, environmentID, Strict)
	if err != nil {
		return nil
	}
	return d.Variants
}

// definition is a flag as flagd's schema has it. Its state is never DISABLED, which serves the code's default.
type definition struct {
	State          string                     `json:"state"`
	Variants       map[string]json.RawMessage `json:"variants"`
	DefaultVariant string                     `json:"defaultVariant"`
	Targeting      json.RawMessage            `json:"targeting,omitempty"` // logic, encoded
	Metadata       map[string]any             `json:"metadata"`
	logic          logic
}

func (d *definition) encode() (json.RawMessage, error) {
	if d.logic != nil {
		var err error
		if d.Targeting, err = appendLogic(nil, d.logic); err != nil {
			return nil, err
		}
	}
	return events.Marshal(d)
}

var (
	errArchived      = errors.New("the flag is archived")
	errCodeDefault   = errors.New("the flag is off and leaves the value to the code: flagd would serve its default value")
	errPrerequisites = errors.New("flagd has no prerequisites")
)

// Variants that no flag has: flagd's engines answer with an error, so that the code's default is served.
const (
	noUnit             = "!TARGETING_KEY_MISSING"
	anotherBucketing   = "!ANOTHER_BUCKETING"
	undecidableVariant = "!VALUE_NOT_COMPARABLE"
)

func translate(f *state.Flag, environmentID string, d Dialect) (*definition, error) {
	if !f.Exists || f.Status == events.ArchivedFlag {
		return nil, errArchived
	}
	t := &translation{
		flag:    f,
		dialect: d,
		definition: definition{
			State: "ENABLED", Variants: map[string]json.RawMessage{},
			Metadata: map[string]any{"flagVersion": uint64(f.Version)},
		},
		names: map[string]string{},
		taken: map[string]bool{},
	}
	t.nameVariations()
	if f.Status == events.InactiveFlag || !f.Enabled.Has(environmentID) {
		if f.OffServes == events.OffServesCode {
			return nil, errCodeDefault
		}
		t.Metadata["flagledgerReason"] = "OFF"
		return &t.definition, t.serveByDefault("off", f.DefaultValue)
	}
	if len(f.Prerequisites[environmentID]) > 0 {
		return nil, errPrerequisites
	}
	if err := t.targeting(environmentID); err != nil {
		return nil, err
	}
	return &t.definition, nil
}

// translation is a definition that is being made.
type translation struct {
	definition
	flag    *state.Flag
	dialect Dialect
	names   map[string]string // variants by the id of their variation
	taken   map[string]bool
}

// plainName is what the name of a variation must be to name its variant: Go's provider changes others.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$`)

func (t *translation) nameVariations() {
	for _, v := range t.flag.Variations {
		name := v.Name
		if !plainName.MatchString(name) || t.taken[name] || name == "null" {
			name = v.ID
		}
		t.names[v.ID], t.taken[name] = name, true
	}
}

// targeting translates the rules of an environment, and what it serves if none matches.
func (t *translation) targeting(environmentID string) error {
	var chain []logic
	for i := range t.flag.Rules[environmentID] {
		rule := &t.flag.Rules[environmentID][i]
		always, err := t.rule(rule, &chain)
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		if always {
			return t.end(chain)
		}
	}
	serve, split := t.flag.FallthroughIn(environmentID), ownSplit(t.flag)
	var last logic
	var err error
	switch {
	case serve != nil && len(serve.Rollout) > 0:
		last, err = t.split(t.flag.Salt, serve)
	case serve != nil && serve.VariationID != "":
		t.DefaultVariant, err = t.variation(serve.VariationID)
	case serve != nil:
		err = t.serveByDefault("fallthrough", serve.Value)
	case split != nil:
		last, err = t.split(t.flag.Salt, split)
	case t.flag.Type == events.BooleanFlag:
		err = t.serveByDefault("on", json.RawMessage("true"))
	default:
		err = t.serveByDefault("default", t.flag.DefaultValue)
	}
	if err != nil {
		return fmt.Errorf("without a matching rule: %w", err)
	}
	if last == nil && len(chain) == 0 {
		return nil
	}
	return t.end(append(chain, last))
}

// end completes the targeting with a chain: conditions, each followed by what it serves, and what is served else.
func (t *translation) end(chain []logic) error {
	last := chain[len(chain)-1]
	if name, ok := last.(string); ok {
		t.DefaultVariant, chain[len(chain)-1] = name, nil
	}
	if t.DefaultVariant == "" { // nothing serves it
		if t.serveByDefault("default", t.flag.DefaultValue) != nil {
			t.DefaultVariant = slices.Min(slices.Collect(maps.Keys(t.Variants)))
		}
	}
	switch {
	case len(chain) > 1:
		t.logic = op("if", chain...)
	case chain[0] != nil:
		t.logic = chain[0]
	}
	return nil
}

// serveByDefault makes a value the default variant. name is for a variant that no variation has.
func (t *translation) serveByDefault(name string, value json.RawMessage) (err error) {
	t.DefaultVariant, err = t.value(name, value)
	return err
}

// value returns a variant for a value.
func (t *translation) value(name string, value json.RawMessage) (string, error) {
	if err := t.checkValue(value); err != nil {
		return "", err
	}
	for t.taken[name] {
		name += "-value"
	}
	t.taken[name], t.Variants[name] = true, value
	return name, nil
}

// variation returns the variant of a variation.
func (t *translation) variation(id string) (string, error) {
	v := t.flag.Variation(id)
	if v == nil {
		return "", errors.New("it serves a variation that the flag does not have")
	}
	name := t.names[id]
	if err := t.checkValue(v.Value); err != nil {
		return "", err
	}
	t.Variants[name] = v.Value
	return name, nil
}

// checkValue refuses values that flagd does not have, or that its providers would change.
func (t *translation) checkValue(value json.RawMessage) error {
	if len(value) == 0 {
		return errors.New("it has no value")
	}
	var fits bool
	switch first := value[0]; t.flag.Type {
	case events.BooleanFlag:
		fits = first == 't' || first == 'f'
	case events.StringFlag:
		fits = first == '"'
	case events.NumberFlag:
		if _, ok := exactNumber(value); !ok {
			return errors.New("it serves a number that does not fit into 64 bits of floating point")
		}
		fits = true
	case events.JSONFlag:
		if first != '{' {
			return errors.New("it serves JSON that is no object")
		}
		fits = true
	}
	if !fits {
		return errors.New("it serves a value of another type")
	}
	return nil
}

// rule adds a rule to a chain. It returns true if the rule has no conditions: it always decides, and the chain ends
// with what it serves.
func (t *translation) rule(r *events.Rule, chain *[]logic) (always bool, err error) {
	var all []logic
	for i := range r.Conditions {
		c, err := t.condition(&r.Conditions[i])
		if err != nil {
			return false, err
		}
		if c.undecidable != nil {
			*chain = append(*chain, c.undecidable, undecidableVariant)
		}
		all = append(all, c.holds)
	}
	var served logic
	switch {
	case r.Serve.VariationID != "":
		served, err = t.variation(r.Serve.VariationID)
	case len(r.Serve.Rollout) > 0:
		served, err = t.split(r.Salt, &r.Serve)
	default:
		served, err = t.value("rule-"+r.ID, r.Serve.Value)
	}
	if err != nil {
		return false, err
	}
	if len(all) == 0 {
		*chain = append(*chain, served)
		return true, nil
	}
	*chain = append(*chain, allOf(all), served)
	return false, nil
}
