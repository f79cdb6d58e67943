package evaluation

import (
	"errors"
	"fmt"
	"time"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

// Segment is a segment compiled for evaluation. It is immutable: each fact makes a new one.
type Segment struct {
	state *state.Segment // that it was compiled from; nothing changes it
	rules []segmentRule
	stale bool // the newest rules could not be compiled: these are older
}

type segmentRule struct {
	id         string
	conditions []condition
}

// State returns the state that the segment was compiled from. The caller must not change it.
func (s *Segment) State() *state.Segment { return s.state }

// CompileSegment compiles a segment's state, which it keeps. before is the segment as compiled of an earlier state, nil
// for none: what has not changed since is used again. If a rule cannot be compiled, the error names it, and the segment
// goes on with the rules that it had before.
func CompileSegment(s *state.Segment, before *Segment) (*Segment, error) {
	next := &Segment{state: s}
	if before != nil && sameSlice(s.Rules, before.state.Rules) {
		next.rules, next.stale = before.rules, before.stale
		return next, nil
	}
	parsing := rules.MaxRegexpCost
	for i := range s.Rules {
		conditions, err := compileConditions(s.Rules[i].Conditions, s.Key, &parsing)
		if err != nil {
			next.rules, next.stale = nil, true
			if before != nil {
				next.rules = before.rules
			}
			return next, fmt.Errorf("rule %s: %w", s.Rules[i].ID, err)
		}
		next.rules = append(next.rules, segmentRule{s.Rules[i].ID, conditions})
	}
	return next, nil
}

// SegmentOutcome says why a context is or is not in a segment.
type SegmentOutcome string

// Outcomes of asking a segment.
const (
	InMembers SegmentOutcome = "member"     // by the list or the rule that the step names
	NotMember SegmentOutcome = "not_member" // excluded by the list that the step names, or by nothing
	NoSegment SegmentOutcome = "missing"    // it does not exist, so nobody is in it
	InCycle   SegmentOutcome = "cycle"      // the question would close a cycle, so the answer is no
)

// membership is the answer of a segment, and what decided.
type membership struct {
	outcome SegmentOutcome
	list    events.MemberList // empty unless a list decided
	ruleID  string            // empty unless a rule decided
}

// asked is what an evaluation has asked beside its flag and context.
type asked struct {
	any     bool
	newest  time.Time  // of what it has asked
	now     time.Time  // of the evaluation, if that was asked
	stale   bool       // a required flag serves a part of an older version, or the salt of a segment is missing
	explain func(Step) // is told of each segment that is asked; nil without an explanation
}

func (a *asked) note(at time.Time) {
	a.any = true
	if at.After(a.newest) {
		a.newest = at
	}
}

// inSegment reports whether the context is in a segment. from is the segment whose rules ask, empty for a flag's.
func (x *Context) inSegment(key, from string, left *effort) bool {
	if *left -= segmentEffort; *left < 0 {
		return false
	}
	segments := x.Dependencies.Segments()
	s := segments.find(key)
	answer, version := membership{outcome: NoSegment}, events.Revision(0)
	if s != nil {
		version = s.state.Version
		x.asked.note(segments.graph.newest(key, s.state.UpdatedAt))
	} else {
		x.asked.note(time.Time{})
	}
	if s != nil && s.state.Exists {
		if segments.graph.closesCycle(from, key) {
			answer.outcome = InCycle
		} else {
			answer = s.membership(x, left)
			x.asked.stale = x.asked.stale || s.state.SaltMissing
		}
	}
	if x.asked.explain != nil {
		x.asked.explain(Step{
			Kind: SegmentStep, Outcome: string(answer.outcome), Key: key, Version: version, List: answer.list,
			RuleID: answer.ruleID,
		})
	}
	return answer.outcome == InMembers
}

// membership answers whether a context is in the segment: excluded members are not, included ones are, and others if a
// rule matches.
func (s *Segment) membership(x *Context, left *effort) membership {
	if list := s.listWith(x.TargetingKey, left); list == events.Excluded {
		return membership{outcome: NotMember, list: list}
	} else if list == events.Included {
		return membership{outcome: InMembers, list: list}
	}
	for i := range s.rules {
		if s.rules[i].matches(x, left) {
			return membership{outcome: InMembers, ruleID: s.rules[i].id}
		}
	}
	return membership{outcome: NotMember}
}

// listWith returns the list that has a targeting key, empty for none.
func (s *Segment) listWith(key string, left *effort) events.MemberList {
	included, excluded := &s.state.Included, &s.state.Excluded
	if key == "" || included.Len()+excluded.Len() == 0 {
		return ""
	}
	*left -= effort(len(key)) >> 3
	if s.state.Private {
		*left -= hashEffort
		hash, ok := state.HashMember(s.state.Salt, key)
		if !ok {
			return ""
		}
		key = string(hash[:])
	}
	switch {
	case excluded.Len() > 0 && excluded.Has(key):
		return events.Excluded
	case included.Has(key):
		return events.Included
	}
	return ""
}

func (r *segmentRule) matches(x *Context, left *effort) bool {
	for i := range r.conditions {
		if !r.conditions[i].holds(x, left) {
			return false
		}
	}
	return true
}

// AskedCondition is a condition that a check of a segment has asked.
type AskedCondition struct {
	RuleID string
	Condition
}

// Check is whether a context is in a segment, and why.
type Check struct {
	Member     bool
	List       events.MemberList // empty unless a list decided
	RuleID     string            // empty unless a rule decided
	Conditions []AskedCondition  // of the segment's rules: of each up to the first that did not match
}

var errNoRules = errors.New("the rules of the segment cannot be evaluated")

// CheckMember answers whether a context is in a segment, with the dependencies of the context. Its error is
// ErrTooLarge, or that of rules that cannot be compiled.
func CheckMember(s *Segment, c *Context) (Check, error) {
	if s.stale {
		return Check{}, errNoRules
	}
	c.asked = asked{}
	left := maxEffort
	check := Check{List: s.listWith(c.TargetingKey, &left)}
	check.Member = check.List == events.Included
	for i := range s.rules {
		if check.List != "" {
			break
		}
		step, matched := explainRule(s.rules[i].conditions, s.state.Rules[i], c, &left)
		for _, condition := range step.Conditions {
			check.Conditions = append(check.Conditions, AskedCondition{s.rules[i].id, condition})
		}
		if matched {
			check.Member, check.RuleID = true, s.rules[i].id
			break
		}
	}
	if left < 0 {
		return Check{}, ErrTooLarge
	}
	return check, nil
}
