package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"flagledger/events"
	"flagledger/events/rules"
)

// targeting holds the rules and the fallthrough of an environment.
type targeting struct {
	rules            []rule
	fallthroughServe *serve // served if no rule matches; nil if the flag decides
	// pending is the newest list of rules while one of them cannot be compiled, else nil.
	pending []pendingRule
}

// rule is a compiled rule.
type rule struct {
	id         string
	conditions []condition
	serve      serve
}

func (r *rule) matches(x *Context, left *effort) bool {
	for i := range r.conditions {
		if !r.conditions[i].holds(x, left) {
			return false
		}
	}
	return true
}

// serve holds exactly one of a variation, a rollout and a value.
type serve struct {
	variation *variation
	rollout   *rollout
	value     json.RawMessage
}

// rollout splits units by weight.
type rollout struct {
	salt   murmur
	by     *attribute // nil for the targeting key
	noUnit *NoUnitError
	total  uint64
	shares []share
}

type share struct {
	variation *variation
	weight    uint64
}

// pendingRule is a rule of a list to be compiled.
type pendingRule struct {
	id   string
	sent *events.Rule // nil if the compiled rule of this id is current
}

// changeRules compiles new and changed rules and reuses the others. If one cannot be compiled, the old rules serve
// until a later change repairs the pending list.
func (f *Flag) changeRules(t *targeting, change events.RulesChanged) error {
	if t.pending == nil {
		for _, r := range t.rules {
			t.pending = append(t.pending, pendingRule{id: r.id})
		}
	}
	t.pending = events.ApplyRules(t.pending, change, func(p pendingRule) string { return p.id },
		func(r events.Rule) pendingRule { return pendingRule{r.ID, &r} })
	compiled, parsing := make([]rule, len(t.pending)), rules.MaxRegexpCost
	for i, p := range t.pending {
		if p.sent == nil {
			compiled[i] = t.rules[slices.IndexFunc(t.rules, func(r rule) bool { return r.id == p.id })]
			continue
		}
		var err error
		if compiled[i], err = f.compileRule(*p.sent, &parsing); err != nil {
			return fmt.Errorf("rule %s: %w", p.id, err)
		}
	}
	t.rules, t.pending = compiled, nil
	return nil
}

// compileRule compiles a rule. parsing is the remaining rules.RegexpCost, and is reduced.
func (f *Flag) compileRule(r events.Rule, parsing *int) (rule, error) {
	serve, err := f.compileServe(r.Serve, newMurmur(r.Salt))
	if err != nil {
		return rule{}, err
	}
	conditions := make([]condition, len(r.Conditions))
	for i, c := range r.Conditions {
		if conditions[i], err = compileCondition(c, parsing); err != nil {
			return rule{}, err
		}
	}
	return rule{id: r.ID, conditions: conditions, serve: serve}, nil
}

func (f *Flag) compileServe(s events.Serve, salt murmur) (serve, error) {
	switch {
	case s.VariationID != "":
		v, err := f.variation(s.VariationID)
		return serve{variation: v}, err
	case len(s.Rollout) > 0:
		shares := make([]share, len(s.Rollout))
		for i, part := range s.Rollout {
			v, err := f.variation(part.VariationID)
			if err != nil {
				return serve{}, err
			}
			shares[i] = share{v, uint64(part.Weight)}
		}
		r := newRollout(salt, s.BucketBy, shares)
		if r == nil {
			return serve{}, errors.New("the weights of the rollout add up to zero")
		}
		return serve{rollout: r}, nil
	case len(s.Value) > 0:
		return serve{value: s.Value}, nil
	default:
		return serve{}, errors.New("it serves nothing")
	}
}

func (f *Flag) variation(id string) (*variation, error) {
	for _, v := range f.variations {
		if v.id == id {
			return v, nil
		}
	}
	return nil, fmt.Errorf("the flag has no variation %s", id)
}

// newRollout returns nil if the weights add up to zero.
func newRollout(salt murmur, bucketBy string, shares []share) *rollout {
	total := uint64(0)
	for _, s := range shares {
		total += s.weight
	}
	if total == 0 {
		return nil
	}
	r := &rollout{salt: salt, noUnit: errNoTargetingKey, total: total, shares: shares}
	if bucketBy != "" && bucketBy != events.TargetingKey {
		r.by, r.noUnit = new(newAttribute(bucketBy)), &NoUnitError{bucketBy}
	}
	return r
}

// pick chooses the variation for a context, and returns false if it has no unit. A unit is a number or a text that is
// not empty.
func (r *rollout) pick(x *Context) (*variation, bool) {
	var h murmur
	if r.by == nil {
		if x.TargetingKey == "" {
			return nil, false
		}
		h = r.salt.text(x.TargetingKey)
	} else {
		switch value := r.by.of(x).(type) {
		case string:
			if value == "" {
				return nil, false
			}
			h = r.salt.text(value)
		case Number:
			h = value.hash(r.salt)
		default:
			return nil, false
		}
	}
	at := h.bucket(r.total)
	for i := range r.shares {
		s := &r.shares[i]
		if at < s.weight {
			return s.variation, true
		}
		at -= s.weight
	}
	return r.shares[len(r.shares)-1].variation, true // not reached: at is less than the sum
}

// serves reports whether a rule or the fallthrough serves a variation.
func (t *targeting) serves(v *variation) bool {
	return t.fallthroughServe != nil && t.fallthroughServe.serves(v) ||
		slices.ContainsFunc(t.rules, func(r rule) bool { return r.serve.serves(v) })
}

func (s *serve) serves(v *variation) bool {
	return s.variation == v ||
		s.rollout != nil && slices.ContainsFunc(s.rollout.shares, func(s share) bool { return s.variation == v })
}

// replace returns a copy in which one variation is replaced by another.
func (t *targeting) replace(from, to *variation) *targeting {
	if t == nil || !t.serves(from) {
		return t
	}
	next := &targeting{rules: slices.Clone(t.rules), pending: t.pending}
	for i := range next.rules {
		next.rules[i].serve = next.rules[i].serve.replace(from, to)
	}
	if t.fallthroughServe != nil {
		next.fallthroughServe = new(t.fallthroughServe.replace(from, to))
	}
	return next
}

func (s serve) replace(from, to *variation) serve {
	if s.variation == from {
		s.variation = to
	}
	if s.rollout != nil {
		next := *s.rollout
		next.shares = slices.Clone(next.shares)
		for i := range next.shares {
			if next.shares[i].variation == from {
				next.shares[i].variation = to
			}
		}
		s.rollout = &next
	}
	return s
}
