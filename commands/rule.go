package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

// MaxRules is how many rules an environment may have.
const MaxRules = 100

// Further limits of an environment's rules.
const (
	maxConditions = 50
	maxValues     = 1000
	maxAttribute  = 200
	maxRegexp     = 1000
	maxRegexps    = 10_000 // the sum of rules.RegexpSize: 1 or 2 MB of memory, and a limited time to match
	// maxServed limits the JSON of an environment's rules. If all change at once, one event must hold the old and new
	// ones, their order, and metadata.
	maxServed = 384 << 10
)

var operatorNames = func() string {
	var names []string
	for _, o := range rules.Operators() {
		names = append(names, string(o.Name))
	}
	return strings.Join(names, ", ")
}()

// SetRules replaces the ordered rules of a flag in an environment. An existing rule keeps its salt, even if it moves
// or changes.
type SetRules struct {
	FlagRef
	Environment events.EnvironmentRef
	Rules       []NewRule // nil if they were not sent, which is refused
	// Fallthrough may be sent too, so that a response can be sent back unchanged. It must not differ.
	Fallthrough *SetFallthrough
	Unusable    SegmentErrors
	// Environments are the tenant's from the snapshot, which may miss a concurrent addition.
	Environments []events.EnvironmentRef
}

// costlyParsing is the rules.RegexpCost from which a list of rules counts as costly: 1 ms.
const costlyParsing = 10_000

// Costly reports whether the regular expressions take so long to parse that the change should queue with other
// tenants' costly ones.
func (c SetRules) Costly() bool { return costly(c.Rules) }

func costly(list []NewRule) bool {
	cost := 0
	for _, r := range list {
		for _, condition := range r.Conditions {
			if condition.Op != events.Matches {
				continue
			}
			for _, v := range condition.Values {
				if pattern, err := rules.ReadText(v); err == nil {
					cost += rules.RegexpCost(pattern)
				}
				if cost > costlyParsing {
					return true
				}
			}
		}
	}
	return false
}

// NewRule is a rule as sent: an existing one, changed or not, or a new one.
type NewRule struct {
	ID         *string // of an existing rule; nil for a new rule
	NewID      string  // for a new rule, as is Salt
	Salt       string
	Name       string
	Conditions []events.Condition // nil if they were not sent
	Serve      *NewServe          // nil if it was not sent, and in a segment
}

// NewServe holds what to serve: exactly one of a variation, a value and a rollout. Fields that were not sent are nil.
type NewServe struct {
	VariationID *string
	Value       json.RawMessage `json:",omitempty"`
	Rollout     []events.Share
	BucketBy    *string
}

func (c SetRules) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	before := f.Rules[c.Environment.ID]
	check := ruleCheck{wrong: FieldErrors{}, flag: &f, unusable: c.Unusable}
	check.wrong.Check(c.Rules != nil, "rules", "is required: an empty list removes all rules")
	after := check.rules(c.Rules, before)
	check.segmentsUsed(append(c.rulesElsewhere(&f), after)...)
	if c.Fallthrough != nil {
		same := events.StoredEqual(f.FallthroughIn(c.Environment.ID), check.fallthroughServe("fallthrough", *c.Fallthrough))
		check.wrong.Check(same, "fallthrough", "is not changed here: PUT it to /fallthrough")
	}
	if err := check.wrong.Err(); err != nil {
		return nil, err
	}
	change := events.ChangeRules(c.Environment, before, after)
	if change.Empty() {
		return nil, nil
	}
	return checkSizes(&f, change)
}

// rulesElsewhere returns the rules of a flag in the tenant's other environments.
func (c SetRules) rulesElsewhere(f *state.Flag) (lists [][]events.Rule) {
	for _, e := range c.Environments {
		if e.ID != c.Environment.ID {
			lists = append(lists, f.Rules[e.ID])
		}
	}
	return lists
}

// SetFallthrough sets or unsets what a flag serves in an environment if no rule matches.
type SetFallthrough struct {
	FlagRef
	Environment events.EnvironmentRef
	Unset       bool
	Serve       *NewServe // nil if Unset, or if it was not sent, which is refused
}

func (c SetFallthrough) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	check := ruleCheck{wrong: FieldErrors{}, flag: &f}
	before, after := f.FallthroughIn(c.Environment.ID), check.fallthroughServe("serve", c)
	if err := check.wrong.Err(); err != nil {
		return nil, err
	}
	if events.StoredEqual(before, after) {
		return nil, nil
	}
	return checkSizes(&f, events.FallthroughChanged{Environment: c.Environment, From: before, To: after})
}

// servedIn lists the rules and fallthroughs that serve a variation.
func servedIn(f *state.Flag, environments []events.EnvironmentRef, variationID string) (places []string) {
	serves := func(s events.Serve) bool { return slices.Contains(s.Variations(), variationID) }
	for _, e := range environments {
		for i, r := range f.Rules[e.ID] {
			if !serves(r.Serve) {
				continue
			}
			rule := fmt.Sprintf("rule %d", i+1)
			if r.Name != "" {
				rule += fmt.Sprintf(" (%s)", r.Name)
			}
			places = append(places, rule+" in "+e.Name)
		}
		if s, ok := f.Fallthrough[e.ID]; ok && serves(s) {
			places = append(places, "the fallthrough in "+e.Name)
		}
	}
	return places
}

func place(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// ruleCheck turns rules as they were sent into rules to store, and collects what is wrong with them.
type ruleCheck struct {
	wrong FieldErrors
	flag  *state.Flag // nil for the rules of a segment, which serve nothing
	// unusable segments are those that rules cannot refer to.
	unusable SegmentErrors
	regexps  int // the size of all regular expressions so far
	parsing  int // what parsing them costs: rules.RegexpCost
}

// rules checks a whole list. before are the environment's current rules.
func (c *ruleCheck) rules(sent []NewRule, before []events.Rule) []events.Rule {
	read := make([]events.Rule, 0, len(sent))
	c.wrong.Check(len(sent) <= MaxRules, "rules", "at most %d rules", MaxRules)
	for i, r := range sent[:min(len(sent), MaxRules)] {
		read = append(read, c.rule(place("rules", i), r, before, read))
	}
	c.size("rules", before, read)
	return read
}

// rule checks one rule of the list. before are the environment's current rules, read the earlier ones of the list.
func (c *ruleCheck) rule(at string, sent NewRule, before, read []events.Rule) events.Rule {
	rule := events.Rule{
		ID:         sent.NewID,
		Salt:       sent.Salt,
		Name:       sent.Name,
		Conditions: make([]events.Condition, 0, len(sent.Conditions)),
	}
	if sent.ID != nil {
		same := func(r events.Rule) bool { return r.ID == *sent.ID }
		existing := slices.IndexFunc(before, same)
		c.wrong.Check(existing >= 0, at+".id", "the environment has no rule of this id; leave it out for a new rule")
		c.wrong.Check(!slices.ContainsFunc(read, same), at+".id", "is the id of another rule of the list")
		if existing >= 0 {
			rule.ID, rule.Salt = before[existing].ID, before[existing].Salt
		}
	}
	CheckText(c.wrong, at+".name", sent.Name, 0, maxName)
	c.wrong.Check(sent.Conditions != nil, at+".conditions", "is required: an empty list is met by everyone")
	c.wrong.Check(len(sent.Conditions) <= maxConditions, at+".conditions", "at most %d conditions", maxConditions)
	for i, condition := range sent.Conditions[:min(len(sent.Conditions), maxConditions)] {
		rule.Conditions = append(rule.Conditions, c.condition(place(at+".conditions", i), condition))
	}
	if c.flag != nil {
		rule.Serve = c.serve(at+".serve", sent.Serve)
	} else {
		rule.Salt = ""
	}
	return rule
}

func (c *ruleCheck) condition(at string, sent events.Condition) events.Condition {
	read := events.Condition{Attribute: sent.Attribute, Op: sent.Op, Negate: sent.Negate}
	operator, known := rules.Find(sent.Op)
	if !known || operator.HasAttribute() {
		c.conditionAttribute(at+".attribute", sent.Attribute, sent.Op)
	} else {
		c.wrong.Check(sent.Attribute == "", at+".attribute", "must be left out: the operator %s has none", sent.Op)
	}
	takesValues := known && operator.Values != rules.NoValue
	c.wrong.Check(sent.Op != "", at+".op", "is required")
	c.wrong.Check(known, at+".op", "must be one of %s", operatorNames)
	values := at + ".values"
	c.wrong.Check(!takesValues || len(sent.Values) > 0, values, "needs at least one value for the operator %s", sent.Op)
	c.wrong.Check(!known || takesValues || len(sent.Values) == 0, values, "must be empty: the operator %s takes no values",
		sent.Op)
	c.wrong.Check(len(sent.Values) <= maxValues, values, "at most %d values", maxValues)
	for i, v := range sent.Values[:min(len(sent.Values), maxValues)] {
		v = compact(v)
		if err := c.value(operator.Values, v); err != nil {
			c.wrong.Check(false, place(values, i), "%v", err)
		}
		read.Values = append(read.Values, v)
	}
	return read
}

// conditionAttribute checks the attribute of a condition.
func (c *ruleCheck) conditionAttribute(at, name string, op events.Operator) {
	switch {
	case name == events.NowAttribute:
		c.wrong.Check(op == events.Before || op == events.After, at, "%s goes with before and after alone", name)
	case name == events.EnvironmentAttribute:
	case strings.HasPrefix(name, events.ReservedPrefix):
		c.wrong.Check(false, at, "names that begin with %s are reserved: there are %s and %s", events.ReservedPrefix,
			events.EnvironmentAttribute, events.NowAttribute)
	default:
		c.attribute(at, name)
	}
}

// attribute checks the name of an attribute: dots separate steps into objects.
func (c *ruleCheck) attribute(at, name string) {
	CheckText(c.wrong, at, name, 1, maxAttribute)
	c.wrong.Check(!slices.Contains(strings.Split(name, "."), ""), at,
		"must not have an empty part before, between or after dots")
}

// value returns what is wrong with a condition's value, which is well-formed JSON, or nil.
func (c *ruleCheck) value(kind rules.Kind, value json.RawMessage) error {
	if err := rules.CheckValue(kind, value); err != nil {
		return err
	}
	if !numbersFit(value) {
		return errors.New(unfitNumber)
	}
	if kind != rules.Pattern && kind != rules.SegmentKey {
		return nil
	}
	text, err := rules.ReadText(value)
	if err != nil {
		return err
	}
	if kind == rules.Pattern {
		return c.regexp(text)
	}
	if why := c.unusable[text]; why != "" {
		return errors.New(why)
	}
	return nil
}

// regexp stops checking once the expressions of a list are too large together, so that it reports only one value. It
// computes the cost before it parses.
func (c *ruleCheck) regexp(pattern string) error {
	if len(pattern) > maxRegexp {
		return fmt.Errorf("must be a regular expression of at most %d bytes", maxRegexp)
	}
	if c.regexps > maxRegexps || c.parsing > rules.MaxRegexpCost {
		return nil
	}
	if c.parsing += rules.RegexpCost(pattern); c.parsing > rules.MaxRegexpCost {
		return errors.New("the regular expressions of the list, up to this one, take too long to parse together")
	}
	size, err := rules.RegexpSize(pattern)
	if err != nil {
		return fmt.Errorf("must be a regular expression of RE2's syntax: %w", err)
	}
	if c.regexps += size; c.regexps > maxRegexps {
		return errors.New("the regular expressions of the list, up to this one, are too large together")
	}
	return nil
}

// fallthroughServe checks a fallthrough. It returns nil for an unset one.
func (c *ruleCheck) fallthroughServe(at string, sent SetFallthrough) *events.Serve {
	if sent.Unset {
		return nil
	}
	return new(c.serve(at, sent.Serve))
}

// serve checks what should be served.
func (c *ruleCheck) serve(at string, sent *NewServe) (read events.Serve) {
	if sent == nil {
		c.wrong.Check(false, at, "is required: an object with one of variationId, value and rollout")
		return read
	}
	value := sent.Value
	if string(value) == "null" && (sent.VariationID != nil || sent.Rollout != nil) {
		value = nil // null counts as not sent, as for the other fields
	}
	ways := 0
	for _, is := range []bool{sent.VariationID != nil, value != nil, sent.Rollout != nil} {
		if is {
			ways++
		}
	}
	c.wrong.Check(ways == 1, at, "must have exactly one of variationId, value and rollout")
	if sent.VariationID != nil {
		read.VariationID = *sent.VariationID
		c.variation(at+".variationId", read.VariationID)
	}
	if value != nil {
		read.Value = compact(value)
		checkValue(c.wrong, at+".value", c.flag.Type, read.Value)
	}
	if sent.Rollout != nil {
		read.Rollout = sent.Rollout
		c.rollout(at+".rollout", sent.Rollout)
	}
	if sent.BucketBy != nil {
		c.attribute(at+".bucketBy", *sent.BucketBy)
		c.wrong.Check(!strings.HasPrefix(*sent.BucketBy, events.ReservedPrefix), at+".bucketBy",
			"must not be a reserved attribute")
		c.wrong.Check(sent.Rollout != nil, at+".bucketBy", "goes with a rollout alone")
		if *sent.BucketBy != events.TargetingKey {
			read.BucketBy = *sent.BucketBy
		}
	}
	return read
}

func (c *ruleCheck) variation(at, id string) {
	c.wrong.Check(id != "", at, "is required")
	c.wrong.Check(c.flag.Variation(id) != nil, at, "the flag has no variation of this id")
}

func (c *ruleCheck) rollout(at string, shares []events.Share) {
	if c.wrong.Check(len(shares) <= maxVariations, at, "at most %d variations",
		maxVariations); len(shares) > maxVariations {
		return
	}
	total, seen := events.Weight(0), map[string]bool{}
	for i, share := range shares {
		c.variation(place(at, i)+".variationId", share.VariationID)
		c.wrong.Check(!seen[share.VariationID], place(at, i)+".variationId", "stands in the rollout already")
		seen[share.VariationID] = true
		if share.Weight < 0 || share.Weight > events.MaxWeight {
			c.wrong.Check(false, place(at, i)+".weight", "must be a number from 0 to %d with at most three decimals",
				events.MaxWeight/1000)
			total++ // so that the sum is not reported too
			continue
		}
		total += share.Weight
	}
	c.wrong.Check(len(shares) > 0, at, "needs at least one variation")
	c.wrong.Check(total > 0, at, "needs weights that add up to more than 0")
}

// size checks that rules take at most maxServed bytes in a fact, or no more than before, because an earlier release
// may have accepted more.
func (c *ruleCheck) size(at string, before, after []events.Rule) {
	if state.RulesBytes(after) <= maxServed {
		return // most are: encoding them takes long
	}
	stored, err := events.Marshal(after)
	if err == nil && len(stored) > maxServed {
		was, _ := events.Marshal(before)
		c.wrong.Check(len(stored) <= len(was), at, "takes %d bytes as JSON; at most %d", len(stored), maxServed)
	}
}
