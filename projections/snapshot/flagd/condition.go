package flagd

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"flagledger/events"
	"flagledger/events/rules"
)

// condition is a translated condition.
type condition struct {
	holds       logic
	undecidable logic // true if the engine cannot decide; nil if it always can
}

func (t *translation) condition(c *events.Condition) (condition, error) {
	switch {
	case c.Op == events.InSegment:
		return condition{}, fmt.Errorf("%s: flagd has no segments", c.Op)
	case strings.HasPrefix(c.Attribute, events.ReservedPrefix):
		return condition{}, fmt.Errorf("%s: flagd has no such attribute", c.Attribute)
	}
	v, err := t.attribute(c.Attribute)
	if err != nil {
		return condition{}, err
	}
	key := c.Attribute == events.TargetingKey
	var translated condition
	switch {
	case c.Op == events.Exists:
		translated.holds = op("!==", v, nil)
	case isSemver(c.Op) && t.dialect != Go: // engines have no sem_ver within `some`
		translated, err = t.test(c, v)
		var undecidable []logic
		if !key {
			undecidable = append(undecidable, op("!", isNoArray(v)))
		}
		if t.dialect != Node {
			signed := op("or", op("in", "-", v), op("in", "+", v))
			undecidable = append(undecidable, op("and", isString(v), startsWithDigit(v), signed))
		}
		if len(undecidable) > 0 {
			translated.undecidable = anyOf(undecidable)
		}
	case key:
		translated, err = t.test(c, v)
	default:
		translated, err = t.test(c, element)
		translated.holds = some(v, translated.holds)
		if translated.undecidable != nil {
			translated.undecidable = some(v, translated.undecidable)
		}
	}
	if err != nil {
		return condition{}, fmt.Errorf("%s: %w", c.Op, err)
	}
	if key {
		translated.holds = op("and", op("!==", v, nil), op("!==", v, ""), translated.holds)
	}
	if c.Negate {
		translated.holds = op("!", translated.holds)
	}
	return translated, nil
}

// some holds if a value, or an element of it if it is an array, passes a test.
func some(value, test logic) logic { return op("some", op("merge", value), test) }

// ofEachObject are the names that every object has in JavaScript.
var ofEachObject = []string{
	"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
}

// attribute translates the name of an attribute.
func (t *translation) attribute(name string) (logic, error) {
	switch {
	case strings.Contains(name, "."):
		return nil, fmt.Errorf("%q may be a name or a path, which flagd cannot tell apart", name)
	case name == "", strings.ContainsAny(name, `/\$`), strings.HasPrefix(name, "__"), slices.Contains(ofEachObject, name),
		strings.Trim(name, "0123456789") == "", strings.TrimSpace(name) != name:
		return nil, fmt.Errorf("flagd cannot read an attribute named %q", name)
	}
	return variable(name), nil
}

func isSemver(o events.Operator) bool {
	operator, known := rules.Find(o)
	return known && operator.Values == rules.Version
}

// test translates what a condition asks of a value that is no array.
func (t *translation) test(c *events.Condition, e logic) (condition, error) {
	operator, known := rules.Find(c.Op)
	if !known {
		return condition{}, errors.New("there is no such operator in flagd")
	}
	if len(c.Values) == 0 {
		return condition{holds: false}, nil
	}
	var holds logic
	var err error
	switch operator.Values {
	case rules.Scalar:
		holds, err = t.in(c.Values, e)
	case rules.Text:
		holds, err = affix(operator.Relation, c.Values, e)
	case rules.Number:
		holds, err = t.compared(operator.Relation, c.Values, e)
	case rules.Version:
		holds, err = version(operator.Relation, c.Values, e)
	case rules.Pattern:
		return matches(c.Values, e)
	case rules.Time:
		err = errors.New("flagd cannot compare times")
	default:
		err = errors.New("flagd has no such operator")
	}
	return condition{holds: holds}, err
}

// manyTexts is from how many texts on a list is shorter than comparing with each.
const manyTexts = 4

func (t *translation) in(values []json.RawMessage, e logic) (logic, error) {
	var tests []logic
	var texts []logic
	for _, value := range values {
		text, err := rules.ReadText(value)
		switch {
		case err == nil:
			texts = append(texts, text)
		case rules.IsNumber(value):
			n, ok := exactNumber(value)
			if !ok {
				return nil, errNumber
			}
			equal := op("===", e, n)
			if t.dialect == Python {
				equal = op("and", equal, op("!", isPythonBoolean(e)))
			}
			tests = append(tests, equal)
		case string(value) == "true", string(value) == "false":
			tests = append(tests, t.dialect.isBoolean(e, string(value) == "true"))
		default:
			return nil, errors.New("a value is no string, number or boolean")
		}
	}
	if len(texts) < manyTexts {
		for _, text := range texts {
			tests = append(tests, op("===", e, text))
		}
	} else {
		tests = append(tests, op("and", isString(e), op("in", e, texts)))
	}
	return anyOf(tests), nil
}

func affix(relation rules.Relation, values []json.RawMessage, e logic) (logic, error) {
	var tests []logic
	for _, value := range values {
		text, err := rules.ReadText(value)
		if err != nil {
			return nil, err
		}
		found, err := contains(relation, text, e)
		if err != nil {
			return nil, err
		}
		tests = append(tests, found)
	}
	return op("and", isString(e), anyOf(tests)), nil
}

// contains holds for strings that contain a text, start with it or end with it.
func contains(relation rules.Relation, text string, e logic) (logic, error) {
	length := 0
	for _, c := range text {
		if c > math.MaxUint16 && relation != rules.Contains {
			return nil, errors.New("engines count characters beyond U+FFFF differently")
		}
		length++
	}
	switch {
	case text == "":
		return op("===", e, e), nil
	case relation == rules.Contains:
		return op("in", text, e), nil
	case relation == rules.StartsWith:
		return op("===", op("substr", e, 0, length), text), nil
	default:
		return op("===", op("substr", e, -length), text), nil
	}
}

var comparisons = map[rules.Relation]string{
	rules.Equal: "=", rules.Greater: ">", rules.GreaterEqual: ">=", rules.Less: "<", rules.LessEqual: "<=",
}

func (t *translation) compared(relation rules.Relation, values []json.RawMessage, e logic) (logic, error) {
	var tests []logic
	for _, value := range values {
		n, ok := exactNumber(value)
		if !ok {
			return nil, errNumber
		}
		tests = append(tests, op(comparisons[relation], e, n))
	}
	return op("and", t.dialect.isNumber(e), anyOf(tests)), nil
}

var errNumber = errors.New("a number does not fit into 64 bits of floating point")

// maxExact is 2^53. Every whole number below it is exact as a float64.
const maxExact = 1 << 53

// exactNumber returns a number as engines write it. ok is false if the number is not exact as a float64.
func exactNumber(text json.RawMessage) (n json.Number, ok bool) {
	if !rules.IsNumber(text) {
		return "", false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.Abs(f) >= maxExact || f == 0 && strings.ContainsAny(mantissa(text), "123456789") {
		return "", false
	}
	shortest := strconv.FormatFloat(f, 'g', -1, 64)
	if f == 0 {
		shortest = "0"
	}
	if !sameNumber(string(text), shortest) {
		return "", false
	}
	return json.Number(shortest), true
}

// mantissa returns a number without its exponent.
func mantissa(text json.RawMessage) string {
	before, _, _ := strings.Cut(strings.ToLower(string(text)), "e")
	return before
}

// sameNumber reports whether two JSON numbers have one value.
func sameNumber(a, b string) bool {
	x, ok := new(big.Rat).SetString(a)
	y, okToo := new(big.Rat).SetString(b)
	return ok && okToo && x.Cmp(y) == 0
}

const (
	digits       = "0123456789"
	endOfVersion = digits + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"
)

// version compares versions. flagd also accepts v1.2.3, 1.2 and " 1.2.3", which we do not: the value must start with a
// digit, end in a character of versions, and not be a number. condition handles 1.2-rc.
func version(relation rules.Relation, values []json.RawMessage, e logic) (logic, error) {
	var tests []logic
	for _, value := range values {
		v, err := rules.ReadVersion(value)
		if err != nil {
			return nil, err
		}
		tests = append(tests, op("sem_ver", e, comparisons[relation], v.String()))
	}
	return op("and", isString(e), startsWithDigit(e), op("in", op("substr", e, -1), endOfVersion),
		op("!", op(">=", e, 0)), anyOf(tests)), nil
}

// startsWithDigit holds for strings that start with a digit.
func startsWithDigit(e logic) logic {
	return op("and", op("!==", e, ""), op("in", op("substr", e, 0, 1), digits))
}
