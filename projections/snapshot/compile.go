package snapshot

import (
	"fmt"
	"unique"

	"flagledger/events/rules"
	"flagledger/events/state"
)

// Compile compiles a flag's state of any time for evaluation in one environment: it serves what the flag served there
// with that state. It returns an error if a rule or the fallthrough cannot be compiled.
func Compile(s state.Flag, environmentID string) (*Flag, error) {
	f := newFlag(s.FlagCreated, s.Version)
	f.status = statusOf(s.Status)
	var t targeting
	parsing := rules.MaxRegexpCost
	for _, r := range s.Rules[environmentID] {
		compiled, err := f.compileRule(r, &parsing)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.ID, err)
		}
		t.rules = append(t.rules, compiled)
	}
	if sent := s.FallthroughIn(environmentID); sent != nil {
		compiled, err := f.compileServe(*sent, f.salt)
		if err != nil {
			return nil, fmt.Errorf("the fallthrough: %w", err)
		}
		t.fallthroughServe = &compiled
	}
	f.environments = []environment{{id: unique.Make(environmentID), enabled: s.Enabled[environmentID], targeting: &t}}
	return f, nil
}
