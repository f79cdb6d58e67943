package evaluation

import (
	"math"
	"time"

	"flagledger/events/rules"
)

// effort is the remaining cost of an evaluation, in units of about 5 ns. Below 0 comparing stops, and the evaluation
// must fail because its result may be wrong.
type effort int

// maxEffort is the most an evaluation may cost: about 20 ms.
const maxEffort effort = 4_000_000

// effortTime is the approximate time of a unit.
const effortTime = 5 * time.Nanosecond

// shortEffort limits a background evaluation: about 200 µs.
const shortEffort = maxEffort / 100

// cost is an upper bound for the cost of a test.
type cost struct {
	each    effort // per value
	per64   effort // per 64 bytes of a text, in addition
	longest int    // texts that are longer are not compared, in bytes
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

// segmentEffort is the cost of asking a segment, beside that of its rules.
const segmentEffort effort = 16

// hashEffort is the cost of hashing a member of a private segment.
const hashEffort effort = 80

// stepEffort is the cost of each step into an object.
const stepEffort effort = 2

// maxMatched limits the texts, in bytes, that regular expressions are matched with.
const maxMatched = 4096
