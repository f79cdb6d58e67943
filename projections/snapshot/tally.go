package snapshot

import "iter"

// Tally is what a call for many flags has evaluated, those that it named or all, and has not counted yet.
type Tally struct {
	keys       []string
	evaluated  []Result
	prefetched []*Flag
	counted    bool // the call itself, which is for all flags
}

// Evaluated adds a flag that was named.
func (y *Tally) Evaluated(key string, r *Result) {
	y.keys, y.evaluated = append(y.keys, key), append(y.evaluated, *r)
}

// Prefetched adds a flag of a call for all.
func (y *Tally) Prefetched(key string, r *Result) {
	y.keys, y.prefetched = append(y.keys, key), append(y.prefetched, r.flag)
}

// Reasons yields why each flag that was named was served what it was.
func (y *Tally) Reasons() iter.Seq[Reason] {
	return func(yield func(Reason) bool) {
		for i := range y.evaluated {
			if !yield(y.evaluated[i].Reason) {
				return
			}
		}
	}
}

// Len is how many flags were added.
func (y *Tally) Len() int { return len(y.keys) }

// empty takes out what has been counted. Its memory is used again.
func (y *Tally) empty() {
	clear(y.keys)
	clear(y.evaluated)
	clear(y.prefetched)
	y.keys, y.evaluated, y.prefetched = y.keys[:0], y.evaluated[:0], y.prefetched[:0]
}
