package queries

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot"
)

// Evaluate evaluates a flag. The error is ErrNotFound for a flag that does not exist, *snapshot.NoUnitError where a
// split has nothing to bucket by, snapshot.ErrTooLarge for a context that cannot be compared in time.
func Evaluate(
	tenant *snapshot.Tenant, environment events.EnvironmentRef, key string, c *snapshot.Context,
) (snapshot.Result, error) {
	flag, ok := tenant.Flag(key)
	if !ok {
		return snapshot.Result{}, ErrNotFound
	}
	return flag.Evaluate(environment.ID, c)
}

// EvaluateShort is Evaluate for as long as it takes some 200 µs at most. Beyond that it ends with snapshot.ErrTooLarge.
func EvaluateShort(
	tenant *snapshot.Tenant, environment events.EnvironmentRef, key string, c *snapshot.Context,
) (snapshot.Result, error) {
	flag, ok := tenant.Flag(key)
	if !ok {
		return snapshot.Result{}, ErrNotFound
	}
	return flag.EvaluateShort(environment.ID, c)
}

// Evaluated is the result of one of many flags, or the error of its evaluation.
type Evaluated struct {
	snapshot.Result
	Err error // as Evaluate's
}

// ErrTooSlow says that evaluating many flags takes too long.
var ErrTooSlow = errors.New("the flags take too long to evaluate")

// Selection is flags of a tenant in the order of their keys, as they were when it was made: evaluating it twice gives
// the same results.
type Selection struct {
	keys  []string
	flags []*snapshot.Flag // nil for one that does not exist
	named bool
}

// Select selects the flags that are named, or all of the tenant where keys is nil.
func Select(tenant *snapshot.Tenant, keys []string) Selection {
	named := keys != nil
	if named {
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	} else {
		keys = tenant.FlagKeys()
	}
	s := Selection{keys, make([]*snapshot.Flag, len(keys)), named}
	for i, key := range keys {
		s.flags[i], _ = tenant.Flag(key)
	}
	return s
}

// Evaluate evaluates the flags. It ends early, with ErrTooSlow as the error of the last flag, when ctx ends or
// evaluating alone has taken longer than atMost.
func (s Selection) Evaluate(
	ctx context.Context, environment events.EnvironmentRef, c *snapshot.Context, atMost time.Duration,
) iter.Seq2[string, Evaluated] {
	return func(yield func(string, Evaluated) bool) {
		for i, key := range s.keys {
			began := time.Now()
			answer := Evaluated{Err: ErrNotFound}
			if flag := s.flags[i]; flag != nil {
				answer.Result, answer.Err = flag.Evaluate(environment.ID, c)
			} else if !s.named {
				continue // it was deleted while they were selected
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
