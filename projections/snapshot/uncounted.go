package snapshot

import "iter"

// Uncounted are the flags that a call has evaluated and not counted yet.
type Uncounted struct {
	keys       []string
	evaluated  []Result
	prefetched []*Flag
	counted    bool // the call itself, which is for all flags
}

// Evaluated adds a flag that was named.
func (u *Uncounted) Evaluated(key string, r *Result) {
	u.keys, u.evaluated = append(u.keys, key), append(u.evaluated, *r)
}

// Prefetched adds a flag of a call for all.
func (u *Uncounted) Prefetched(key string, r *Result) {
	u.keys, u.prefetched = append(u.keys, key), append(u.prefetched, r.flag)
}

// Reasons yields why each flag that was named was served what it was.
func (u *Uncounted) Reasons() iter.Seq[Reason] {
	return func(yield func(Reason) bool) {
		for i := range u.evaluated {
			if !yield(u.evaluated[i].Reason) {
				return
			}
		}
	}
}

// Len is how many flags were added.
func (u *Uncounted) Len() int { return len(u.keys) }

// empty takes out what has been counted. Its memory is used again.
func (u *Uncounted) empty() {
	clear(u.keys)
	clear(u.evaluated)
	clear(u.prefetched)
	u.keys, u.evaluated, u.prefetched = u.keys[:0], u.evaluated[:0], u.prefetched[:0]
}
