package snapshot

import (
	"math"
	"time"

	"flagledger/events/rules"
)

// effort is what an evaluation may still cost, in units of about 5 ns. When it is below 0 nothing is compared any more,
// and the evaluation must fail: its result may be wrong.
type effort int

// maxEffort is what an evaluation may cost: about 20 ms.
const maxEffort effort = 4_000_000

// effortTime is about how long a unit takes.
const effortTime = 5 * time.Nanosecond

// shortEffort is what an evaluation may cost that nobody waits for: about 200 µs.
const shortEffort = maxEffort / 100

// cost is an upper bound for the cost of a test.
type cost struct {
	each    effort // per value
	per64   effort // per 64 bytes of a text, in addition
	longest int    // text that is compared at all, in bytes
}

func costOf(t test) cost {
	c := cost{each: 1, per64: 1, longest: math.MaxInt}
	switch t := t.(type) {
	case affix:
		if c.each = effort(len(t.values)); t.relation == rules.Contains {
			c.per64 = 8 * c.each
		}
	case matches:
		c = cost{each: effort(len(t.patterns)), longest: maxMatched} // see match for the rest
	case *versionEqual:
		c.each, c.per64 = 16, 24
	case textBound[rules.SemanticVersion], textBound[time.Time]:
		c.each, c.per64 = 4, 24
	}
	return c
}

// stepEffort is the cost of each step into an object.
const stepEffort effort = 2

// maxMatched is the longest text, in bytes, that regular expressions are matched with.
const maxMatched = 4096
