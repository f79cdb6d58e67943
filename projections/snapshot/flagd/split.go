package flagd

import (
	"errors"
	"math"
	"strings"

	"flagledger/events"
	"flagledger/events/state"
)

// probe detects engines that bucket differently. Engines that bucket as we do put it into the first half of a split of
// two; those from before April 2026, and those that hash CBOR (flagd 1.0), put it into the second.
const probe = "flagledger-probe-87"

// differentBucketing holds in engines whose splits differ from ours.
var differentBucketing = op("!==",
	op("fractional", op("cat", probe), []logic{"a", 1}, []logic{"b", 1}), "a")

// ownSplit returns the split between the variations of a flag, nil if none of them has a weight.
func ownSplit(f *state.Flag) *events.Serve {
	s := &events.Serve{}
	for _, v := range f.Variations {
		if v.Weight > 0 {
			s.Rollout = append(s.Rollout, events.Share{VariationID: v.ID, Weight: v.Weight})
		}
	}
	if len(s.Rollout) == 0 {
		return nil
	}
	return s
}

// split translates a rollout: an error without a unit or in engines that bucket otherwise, else the variant of the
// unit.
func (t *translation) split(salt string, s *events.Serve) (logic, error) {
	total, divisor := int64(0), int64(0)
	for _, share := range s.Rollout {
		total += int64(share.Weight)
		divisor = commonDivisor(int64(share.Weight), divisor)
	}
	switch {
	case total == 0:
		return nil, errors.New("the weights of its split add up to nothing")
	case total/divisor > math.MaxInt32:
		return nil, errors.New("the weights of its split are too large")
	case !plainSalt(salt):
		return nil, errors.New("the salt of its split has other characters than ASCII")
	}
	missing, unit, err := t.unit(s.BucketBy)
	if err != nil {
		return nil, err
	}
	// The mark at the end is removed again: Go's cat trims white space, which belongs to the unit.
	text := op("substr", op("cat", salt+":", unit, "|"), 0, -1)
	fractional := []logic{text}
	var name string
	for _, share := range s.Rollout {
		if share.Weight > 0 {
			if name, err = t.variation(share.VariationID); err != nil {
				return nil, err
			}
			// The shares of the buckets stay the same: their bounds are whole numbers before and after.
			fractional = append(fractional, []logic{name, int64(share.Weight) / divisor})
		}
	}
	if len(fractional) == 2 { // all units get the same: flagd's schema wants two shares
		return op("if", missing, noUnit, name), nil
	}
	return op("if", missing, noUnit, differentBucketing, anotherBucketing, op("fractional", fractional...)), nil
}

// unit translates the attribute that a split buckets by. missing holds if a context has none that is certainly written
// as in our hash.
func (t *translation) unit(bucketBy string) (missing, unit logic, err error) {
	if bucketBy == "" || bucketBy == events.TargetingKey {
		key := variable(events.TargetingKey)
		return op("or", op("===", key, nil), op("===", key, "")), key, nil
	}
	u, err := t.attribute(bucketBy)
	if err != nil {
		return nil, nil, err
	}
	number := []logic{t.dialect.isNumber(u), op("<", u, maxExact), op(">", u, -maxExact),
		op("or", op(">=", u, minExact), op("<=", u, -minExact), op("===", u, 0))}
	if t.dialect == Python { // which prints 1.0 for 1
		number = append(number, op("!", op("in", ".", op("cat", u))))
	}
	text := op("and", isString(u), op("!==", u, ""))
	return op("!", op("or", text, op("and", number...))), op("if", op("===", u, 0), "0", u), nil // -0 is written 0
}

// minExact is the smallest number that engines write without an exponent.
const minExact = 0.000001

func plainSalt(salt string) bool {
	return !strings.ContainsFunc(salt, func(c rune) bool { return c <= ' ' || c > '~' })
}

func commonDivisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
