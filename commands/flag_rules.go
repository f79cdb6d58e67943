package commands

import (
	"regexp"
	"slices"
	"strconv"

	"flagledger/events"
	"flagledger/events/state"
)

const maxKeyPattern = 200

// SetFlagRules sets what a tenant demands of changes to its flags.
type SetFlagRules struct {
	TenantRef
	Naming        *events.FlagNaming
	RequireReason []string // names of environments
	RequireOwner  bool
}

func (c SetFlagRules) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	to := events.FlagRules{Naming: c.Naming, RequireOwner: c.RequireOwner}
	if c.Naming != nil {
		checkNaming(wrong, c.Naming)
	}
	for i, name := range c.RequireReason {
		environment := t.Environment(name)
		wrong.Check(environment != nil, "requireReason["+strconv.Itoa(i)+"]", "the tenant has no environment %q", name)
		if environment != nil && !slices.Contains(to.RequireReason, *environment) {
			to.RequireReason = append(to.RequireReason, *environment)
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if events.StoredEqual(t.FlagRules, to) {
		return nil, nil
	}
	return []events.Fact{events.FlagRulesChanged{From: t.FlagRules, To: to}}, nil
}

func checkNaming(wrong FieldErrors, n *events.FlagNaming) {
	CheckText(wrong, "naming.pattern", n.Pattern, 1, maxKeyPattern)
	CheckText(wrong, "naming.hint", n.Hint, 0, maxName)
	wrong.Check(keyPattern.MatchString(n.Example), "naming.example", "must match %s", keyPattern)
	if _, err := regexp.Compile(n.Pattern); err != nil {
		wrong.Check(false, "naming.pattern", "must be a regular expression in the syntax of RE2: %v", err)
		return
	}
	wrong.Check(n.Pattern == "" || matchesNaming(n, n.Example), "naming.example", "must match naming.pattern as a whole")
}

// matchesNaming reports whether a key as a whole matches the pattern.
func matchesNaming(n *events.FlagNaming, key string) bool {
	pattern, err := regexp.Compile(`\A(?:` + n.Pattern + `)\z`)
	return err == nil && pattern.MatchString(key)
}

// checkFlagRules checks what the tenant demands of a new flag.
func (c CreateFlag) checkFlagRules(wrong FieldErrors) {
	if n := c.Rules.Naming; n != nil && !matchesNaming(n, c.Key) {
		hint := ""
		if n.Hint != "" {
			hint = ": " + n.Hint
		}
		wrong.Check(false, "key", "must match the tenant's pattern %s, as %s does%s", n.Pattern, n.Example, hint)
	}
	wrong.Check(!c.Rules.RequireOwner || c.Owner != "", "owner", "is required by the tenant's rules for flags")
}

// NeedsReason reports whether a fact is a change in an environment, or of the whole flag while it is on there.
// Disabling a flag never needs a reason.
func NeedsReason(f *state.Flag, stream string, fact events.Fact, in events.EnvironmentRef) bool {
	if _, off := fact.(events.FlagDisabled); off {
		return false
	}
	d, err := state.Describe(events.Recorded{Stream: stream, Event: events.Event{Fact: fact}})
	if err == nil && d.Environment != nil {
		return *d.Environment == in.Name
	}
	return f.Exists && f.Enabled.Has(in.ID)
}
