package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/rules"
)

// condition is a compiled condition.
type condition struct {
	attribute attribute
	segments  []string // keys of in_segment, which has no attribute; nil for other operators
	within    string   // the key of the segment whose rule has the condition; empty for a flag's
	test      test
	cost      cost
	negate    bool
}

// compileCondition compiles a condition of a segment, or of a flag for an empty key. parsing is the remaining
// rules.RegexpCost, and is reduced.
func compileCondition(c events.Condition, within string, parsing *int) (condition, error) {
	if c.Op == events.InSegment {
		keys, err := operands(c.Values, rules.ReadText)
		if err != nil {
			return condition{}, fmt.Errorf("%s: %w", c.Op, err)
		}
		return condition{segments: keys, within: within, negate: c.Negate}, nil
	}
	t, err := compileTest(c.Op, c.Values, parsing)
	if err != nil {
		return condition{}, fmt.Errorf("the condition on %q: %s: %w", c.Attribute, c.Op, err)
	}
	return condition{attribute: newAttribute(c.Attribute), test: t, cost: costOf(t), negate: c.Negate}, nil
}

func (c *condition) holds(x *Context, left *effort) bool {
	switch {
	case c.segments != nil:
		return slices.ContainsFunc(c.segments, func(key string) bool { return x.inSegment(key, c.within, left) }) != c.negate
	case c.attribute.reserved:
		return c.holdsReserved(x, left)
	}
	if c.attribute.targetingKey {
		return (x.TargetingKey != "" && c.fitsText(x.TargetingKey, left)) != c.negate
	}
	*left -= stepEffort * effort(len(c.attribute.path))
	return c.fits(c.attribute.of(x), left) != c.negate
}

// holdsReserved works like holds for a reserved attribute, without allocating. An unknown one never matches, so its
// negation does.
func (c *condition) holdsReserved(x *Context, left *effort) bool {
	switch c.attribute.name {
	case events.EnvironmentAttribute:
		return (x.Environment != "" && c.fitsText(x.Environment, left)) != c.negate
	case events.NowAttribute:
		t, ok := c.test.(textBound[time.Time])
		*left--
		return (ok && t.bound.passes(x.now().Compare(t.bound.value))) != c.negate
	default:
		return c.negate
	}
}

// fits reports whether a value passes the test. An array passes if one of its elements does; arrays in it never do.
func (c *condition) fits(value any, left *effort) bool {
	if _, ok := c.test.(exists); ok {
		return value != nil
	}
	if elements, ok := value.([]any); ok {
		for _, element := range elements {
			if c.fitsOne(element, left) {
				return true
			}
		}
		return false
	}
	return c.fitsOne(value, left)
}

func (c *condition) fitsOne(value any, left *effort) bool {
	if text, ok := value.(string); ok {
		return c.fitsText(text, left)
	}
	if *left--; *left < 0 {
		return false
	}
	switch value := value.(type) {
	case Number:
		if *left -= effort(len(value.rest)) >> 6; *left < 0 {
			return false
		}
		return c.test.number(value)
	case bool:
		return c.test.boolean(value)
	default:
		return false
	}
}

func (c *condition) fitsText(text string, left *effort) bool {
	if len(text) > c.cost.longest {
		return false
	}
	*left -= c.cost.each + c.cost.per64*effort(len(text))>>6
	if *left < 0 {
		return false
	}
	if m, ok := c.test.(matches); ok {
		return m.match(text, left)
	}
	return c.test.text(text)
}

// test is a compiled operator. Values of other types do not pass.
type test interface {
	text(string) bool
	number(Number) bool
	boolean(bool) bool
}

type never struct{}

func (never) text(string) bool   { return false }
func (never) number(Number) bool { return false }
func (never) boolean(bool) bool  { return false }

func compileTest(name events.Operator, values []json.RawMessage, parsing *int) (test, error) {
	operator, ok := rules.Find(name)
	if !ok {
		return nil, errors.New("no such operator")
	}
	relation := operator.Relation
	switch operator.Values {
	case rules.SegmentKey: // see compileCondition
	case rules.NoValue:
		return exists{}, nil
	case rules.Scalar:
		return compileIn(values)
	case rules.Text:
		texts, err := operands(values, rules.ReadText)
		return affix{relation: relation, values: texts}, err
	case rules.Pattern:
		compiled, err := operands(values, func(v json.RawMessage) (pattern, error) { return readPattern(v, parsing) })
		return matches{patterns: compiled}, err
	case rules.Number:
		numbers, err := operands(values, readNumber)
		return numberBound{bound: newBound(relation, numbers, Number.compare)}, err
	case rules.Time:
		times, err := operands(values, rules.ReadTime)
		return textBound[time.Time]{bound: newBound(relation, times, time.Time.Compare), parse: rules.ParseTime}, err
	case rules.Version:
		if relation == rules.Equal {
			texts, err := operands(values, readPlainVersion)
			return &versionEqual{texts: newOneOf(texts)}, err
		}
		versions, err := operands(values, rules.ReadVersion)
		return textBound[rules.SemanticVersion]{
			bound: newBound(relation, versions, rules.SemanticVersion.Compare),
			parse: rules.ParseSemanticVersion,
		}, err
	}
	return nil, errors.New("the operator has values of an unknown kind")
}

// in passes a value that equals one of the values. Strings and booleans are compared exactly, numbers by value.
type in struct {
	texts    oneOf[string]
	numbers  oneOf[Number]
	booleans [2]bool // whether false and true are among the values
}

func compileIn(values []json.RawMessage) (test, error) {
	var t in
	var texts []string
	var numbers []Number
	for i, value := range values {
		if text, err := rules.ReadText(value); err == nil {
			texts = append(texts, text)
		} else if n, err := readNumber(value); err == nil {
			numbers = append(numbers, n)
		} else if string(value) == "true" || string(value) == "false" {
			t.booleans[index(value[0] == 't')] = true
		} else {
			return nil, fmt.Errorf("values[%d] must be a string, a number or a boolean", i)
		}
	}
	t.texts, t.numbers = newOneOf(texts), newOneOf(numbers)
	return &t, nil
}

func (t *in) text(s string) bool   { return t.texts.has(s) }
func (t *in) number(n Number) bool { return t.numbers.has(n) }
func (t *in) boolean(b bool) bool  { return t.booleans[index(b)] }

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// oneOf is a set that never changes.
type oneOf[T comparable] struct {
	few  []T
	many map[T]struct{}
}

const manyValues = 8 // from here on a map is faster than a list

func newOneOf[T comparable](values []T) oneOf[T] {
	if len(values) < manyValues {
		return oneOf[T]{few: slices.Clip(values)}
	}
	many := make(map[T]struct{}, len(values))
	for _, value := range values {
		many[value] = struct{}{}
	}
	return oneOf[T]{many: many}
}

func (s *oneOf[T]) has(value T) bool {
	if s.many == nil {
		return slices.Contains(s.few, value)
	}
	_, found := s.many[value]
	return found
}

// affix passes texts that contain, start with or end with one of the values, depending on the relation.
type affix struct {
	never
	relation rules.Relation
	values   []string
}

func (t affix) text(s string) bool {
	for _, value := range t.values {
		switch {
		case t.relation == rules.Contains && strings.Contains(s, value),
			t.relation == rules.StartsWith && strings.HasPrefix(s, value),
			t.relation == rules.EndsWith && strings.HasSuffix(s, value):
			return true
		}
	}
	return false
}

// matches passes texts that match one of the patterns. Its match replaces text, because compiling and matching cost
// effort.
type matches struct {
	never
	patterns []pattern
}

func (t matches) match(s string, left *effort) bool {
	for _, p := range t.patterns {
		program, ok := p.program(left)
		if !ok {
			return false
		}
		if *left -= effort(program.size) * effort(len(s)); *left < 0 {
			return false
		}
		if program.MatchString(s) {
			return true
		}
	}
	return false
}

// order is the required result of comparing a value with a bound.
type order struct {
	sign  int // of the comparison with the bound
	equal bool
}

var orders = map[rules.Relation]order{
	rules.Greater: {+1, false}, rules.GreaterEqual: {+1, true}, rules.Less: {-1, false}, rules.LessEqual: {-1, true},
}

// bound is the least strict of several values: what does not pass it passes none of them.
type bound[T any] struct {
	order
	value T
	none  bool // there was no value
}

func newBound[T any](relation rules.Relation, values []T, compare func(T, T) int) bound[T] {
	if len(values) == 0 {
		return bound[T]{none: true}
	}
	o := orders[relation]
	easiest := slices.MinFunc(values, func(a, b T) int { return o.sign * compare(a, b) })
	return bound[T]{order: o, value: easiest}
}

func (b *bound[T]) passes(compared int) bool {
	return !b.none && (compared == b.sign || compared == 0 && b.equal)
}

type numberBound struct {
	never
	bound bound[Number]
}

func (t numberBound) number(n Number) bool { return t.bound.passes(n.compare(t.bound.value)) }

// textBound compares texts that hold a time or a version.
type textBound[T interface{ Compare(T) int }] struct {
	never
	bound bound[T]
	parse func(string) (T, bool)
}

func (t textBound[T]) text(s string) bool {
	v, ok := t.parse(s)
	return ok && t.bound.passes(v.Compare(t.bound.value))
}

// versionEqual passes versions with the same precedence as one of the values, which is the same text without build
// metadata.
type versionEqual struct {
	never
	texts oneOf[string]
}

func (t *versionEqual) text(s string) bool {
	plain, ok := rules.PlainVersion(s)
	return ok && t.texts.has(plain)
}

// exists passes any value but null, an empty array too.
type exists struct{}

func (exists) text(string) bool   { return true }
func (exists) number(Number) bool { return true }
func (exists) boolean(bool) bool  { return true }
