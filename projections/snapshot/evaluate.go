package snapshot

import (
	"encoding/json"
	"slices"

	"github.com/twmb/murmur3"

	"flagledger/events"
)

// Reason says why an evaluation gave its value, in LaunchDarkly's words.
type Reason string

// The reasons.
const (
	Archived    Reason = "ARCHIVED"
	Off         Reason = "OFF"
	RuleMatch   Reason = "RULE_MATCH"
	Fallthrough Reason = "FALLTHROUGH"
)

// Result is what a flag serves.
type Result struct {
	Enabled       bool
	Value         json.RawMessage
	Reason        Reason
	VariationID   string // empty where no variation was served
	VariationName string
	RuleID        string // empty where no rule matched
	Split         bool   // the unit was bucketed
	Ruled         bool   // the environment has rules, whether or not one matched
	Version       events.Revision
}

// Context is whom a flag is evaluated for.
type Context struct {
	TargetingKey string
	// Attributes hold nil, bool, string, Number, []any and map[string]any.
	Attributes map[string]any
}

// NoUnitError says that a split was reached and there was nothing to bucket by.
type NoUnitError struct {
	Attribute string // that the split buckets by: targetingKey, or one of the attributes
}

func (e *NoUnitError) Error() string {
	return e.Attribute + " is required: the flag splits its traffic by it"
}

const targetingKey = "targetingKey"

var (
	jsonTrue       = json.RawMessage("true")
	noTargetingKey = &NoUnitError{targetingKey}
)

// Evaluate says what the flag serves in an environment. It allocates nothing. The error is a *NoUnitError.
func (f *Flag) Evaluate(environmentID string, c *Context) (Result, error) {
	r := Result{Value: f.defaultValue, Version: f.version}
	switch {
	case f.status == events.ArchivedFlag:
		r.Reason = Archived
		return r, nil
	case f.status == events.InactiveFlag || !slices.Contains(f.enabled, environmentID):
		r.Reason = Off
		return r, nil
	}
	r.Enabled, r.Reason = true, Fallthrough
	switch {
	case f.total > 0:
		if c.TargetingKey == "" {
			return Result{}, noTargetingKey
		}
		v := &f.variations[f.split(c.TargetingKey)]
		r.Split = true
		r.Value, r.VariationID, r.VariationName = v.Value, v.ID, v.Name
	case f.kind == events.BooleanFlag:
		r.Value = jsonTrue
	}
	return r, nil
}

// split picks a variation by weight. Where one of two variations grows at the other's expense, units move only into it.
func (f *Flag) split(unit string) int {
	at := Bucket(f.salt, unit, f.total)
	for i := range f.variations {
		weight := uint64(f.variations[i].Weight)
		if at < weight {
			return i
		}
		at -= weight
	}
	return len(f.variations) - 1
}

// Bucket maps a unit to [0, total), evenly: (murmur3_32(salt + ":" + unit) * total) >> 32. total is less than 1<<32.
func Bucket(salt, unit string, total uint64) uint64 {
	var buffer [256]byte
	b := append(buffer[:0], salt...)
	b = append(b, ':')
	b = append(b, unit...)
	return uint64(murmur3.Sum32(b)) * total >> 32
}
