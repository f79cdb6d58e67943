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

// Evaluate evaluates a flag. The error is ErrNotFound for a flag that does not exist, *snapshot.NoUnitError where a split has nothing to
// bucket by, snapshot.ErrTooLarge for a context that cannot be compared in time.
func Evaluate(tenant *snapshot.Tenant, environment events.EnvironmentRef, key string, c *snapshot.Context) (snapshot.Result, error) {
	flag, ok := tenant.Flag(key)
	if !ok {
		return snapshot.Result{}, ErrNotFound
	}
	return flag.Evaluate(environment.ID, c)
}

// Evaluated is the result of one of many flags, or the error of its evaluation.
type Evaluated struct {
	snapshot.Result
	Err error // as Evaluate's
}

// ErrTooSlow says that evaluating many flags takes too long.
var ErrTooSlow = errors.New("the flags take too long to evaluate")

// EvaluateMany evaluates flags in the order of their keys: those that are named, or all of the tenant where keys is nil. It ends early, with
// ErrTooSlow as the error of the last flag, when ctx ends or evaluating alone has taken longer than atMost.
func EvaluateMany(ctx context.Context, tenant *snapshot.Tenant, environment events.EnvironmentRef, keys []string, c *snapshot.Context, atMost time.Duration) iter.Seq2[string, Evaluated] {
	named := keys != nil
	if named {
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	} else {
		keys = tenant.FlagKeys()
	}
	return func(yield func(string, Evaluated) bool) {
		for _, key := range keys {
			began := time.Now()
			result, err := Evaluate(tenant, environment, key, c)
			if atMost -= time.Since(began); atMost < 0 || ctx.Err() != nil {
				yield(key, Evaluated{Err: ErrTooSlow})
				return
			}
			if err == ErrNotFound && !named { //nolint:errorlint // as Evaluate returns it
				continue // it has been deleted meanwhile
			}
			if !yield(key, Evaluated{result, err}) {
				return
			}
		}
	}
}
