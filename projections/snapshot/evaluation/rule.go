package evaluation

import (
	"encoding/json"
	"errors"

	"flagledger/events"
)

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

// serve is exactly one of a variation, a rollout and a value.
type serve struct {
	variation *Variation
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
	variation *Variation
	weight    uint64
}

// compileConditions compiles the conditions of a segment's rule, or of a flag's for an empty key.
func compileConditions(list []events.Condition, within string, parsing *int) ([]condition, error) {
	compiled := make([]condition, len(list))
	for i, c := range list {
		var err error
		if compiled[i], err = compileCondition(c, within, parsing); err != nil {
			return nil, err
		}
	}
	return compiled, nil
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
			return serve{}, errors.New("the weights of the rollout add up to nothing")
		}
		return serve{rollout: r}, nil
	case len(s.Value) > 0:
		return serve{value: s.Value}, nil
	default:
		return serve{}, errors.New("it serves nothing")
	}
}

// newRollout returns nil if the weights add up to nothing.
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
		r.by, r.noUnit = new(newAttribute(bucketBy)), &NoUnitError{Attribute: bucketBy}
	}
	return r
}

// pick chooses the variation for a context, and returns false if it has no unit. A unit is a number or a text that is
// not empty.
func (r *rollout) pick(x *Context) (*Variation, bool) {
	var h murmur
	if r.by == nil {
		if x.TargetingKey == "" {
			return nil, false
		}
		h = r.salt.text(x.TargetingKey)
	} else {
		if r.by.reserved {
			return nil, false
		}
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
