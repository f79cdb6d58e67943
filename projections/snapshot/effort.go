package snapshot

import (
	"math"
	"time"

	"flagledger/events/rules"
)

// effort is what an evaluation may still cost, in steps of about 5 ns. Once it is below 0 nothing more is compared, and what has been said since the
// evaluation began is void.
type effort int

// maxEffort is what a whole evaluation may cost: some 20 ms.
const maxEffort effort = 4_000_000

// cost is what a test costs at most.
type cost struct {
	each    effort // for a value
	per64   effort // for 64 bytes of a text, beside
	longest int    // text that is tried at all
}

func costOf(t test) cost {
	c := cost{each: 1, per64: 1, longest: math.MaxInt}
	switch t := t.(type) {
	case affix:
		if c.each = effort(len(t.values)); t.relation == rules.Contains {
			c.per64 = 8 * c.each
		}
	case matches:
		c = cost{each: effort(len(t.patterns)), longest: maxMatched}
		for _, p := range t.patterns {
			c.per64 += 64 * effort(p.size)
		}
	case versionEqual:
		c.each, c.per64 = 2*effort(len(t.versions)), 24
	case textBound[rules.SemanticVersion], textBound[time.Time]:
		c.each, c.per64 = 4, 24
	}
	return c
}

// maxMatched bounds the texts that patterns are tried on, in bytes: what matching costs grows with both.
const maxMatched = 4096
