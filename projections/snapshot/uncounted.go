package snapshot

import (
	"iter"

	"flagledger/projections/snapshot/evaluation"
)

// Uncounted collects the flags that a call has evaluated but not counted yet.
type Uncounted struct {
	keys       []string
	evaluated  []Result
	prefetched []*Flag
	counted    bool // the call itself, which is for all flags
}

// Evaluated adds a flag that the call named.
func (u *Uncounted) Evaluated(key string, r *Result) {
	u.keys, u.evaluated = append(u.keys, key), append(u.evaluated, *r)
}

// Prefetched adds a flag of a call for all flags.
func (u *Uncounted) Prefetched(key string, r *Result) {
	u.keys, u.prefetched = append(u.keys, key), append(u.prefetched, r.flag)
}

// Reasons yields why each flag that was named was served what it was.
func (u *Uncounted) Reasons() iter.Seq[evaluation.Reason] {
	return func(yield func(evaluation.Reason) bool) {
		for i := range u.evaluated {
			if !yield(u.evaluated[i].Reason) {
				return
			}
		}
	}
}

// Len returns the number of flags that were added.
func (u *Uncounted) Len() int { return len(u.keys) }

// empty removes what has been counted, and keeps the memory for reuse.
func (u *Uncounted) empty() {
	clear(u.keys)
	clear(u.evaluated)
	clear(u.prefetched)
	u.keys, u.evaluated, u.prefetched = u.keys[:0], u.evaluated[:0], u.prefetched[:0]
}
