package queries

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"flagledger/events/state"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
)

// Evaluated holds the result of one of many flags, or its error.
type Evaluated struct {
	evaluation.Result
	Flag *snapshot.Flag // that counts the evaluation; nil for the past
	Err  error          // ErrNotFound, or one of evaluation.Flag.Evaluate
}

// ErrTooSlow reports that evaluating many flags takes too long.
var ErrTooSlow = errors.New("the flags take too long to evaluate")

// Selection holds the selected flags of a tenant in key order as they were at selection. Evaluating it twice gives the
// same results.
type Selection struct {
	keys  []string
	flags []selectedFlag
	named bool
}

// selectedFlag is a flag, and what it depends on at the same moment; nil for an unknown flag.
type selectedFlag struct {
	*snapshot.Flag
	dependencies *evaluation.Dependencies
}

// Select selects the flags with these keys that the caller sees, or all of the tenant if keys is nil. Other flags are
// unknown to the caller.
func Select(tenant *snapshot.Tenant, keys []string, sees func(*snapshot.Flag) bool) Selection {
	named := keys != nil
	if named {
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	} else {
		keys = tenant.FlagKeys()
	}
	s := Selection{keys, make([]selectedFlag, len(keys)), named}
	for i, key := range keys {
		if flag, dependencies, ok := tenant.FlagWithDependencies(key); ok && sees(flag) {
			s.flags[i] = selectedFlag{flag, dependencies}
		}
	}
	return s
}

// Evaluate yields the result of each flag. It stops, with ErrTooSlow for the last flag, when ctx ends or evaluation
// alone exceeds atMost.
func (s Selection) Evaluate(
	ctx context.Context, environment state.Environment, c *evaluation.Context, atMost time.Duration,
) iter.Seq2[string, Evaluated] {
	return func(yield func(string, Evaluated) bool) {
		c.Environment = environment.Name
		for i, key := range s.keys {
			began := time.Now()
			answer := Evaluated{Err: ErrNotFound}
			if flag := s.flags[i]; flag.Flag != nil {
				answer.Flag, c.Dependencies = flag.Flag, flag.dependencies
				answer.Result, answer.Err = flag.Evaluate(environment.ID, c)
			} else if !s.named {
				continue // unknown to the caller, or deleted during the selection
			}
			if atMost -= time.Since(began); atMost < 0 || ctx.Err() != nil {
				yield(key, Evaluated{Err: ErrTooSlow})
				return
			}
			if !yield(key, answer) {
				return
			}
		}
	}
}
