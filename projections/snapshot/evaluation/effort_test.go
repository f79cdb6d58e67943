package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/rules"
)

// What a flag's rules may cost at most, and what a context's body has room for, must not add up to much of an
func TestWhatAnEvaluationCostsIsBounded(t *testing.T) {
	texts := func(n int, format string) (list []json.RawMessage) {
		for i := range n {
			list = append(list, json.RawMessage(fmt.Sprintf(format, i)))
		}
		return list
	}
	elements := func(n int, element any) (list []any) {
		for range n {
			list = append(list, element)
		}
		return list
	}
	rulesOf := func(conditions int, op events.Operator, values []json.RawMessage) events.RulesChanged {
		var list []events.Rule
		for i := range conditions {
			list = append(
				list,
				events.Rule{
					ID:         fmt.Sprint("r", i),
					Serve:      toA,
					Conditions: []events.Condition{{Attribute: "a", Op: op, Values: values}},
				},
			)
		}
		return ruled(list...)
	}
	mega := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct {
		rules     events.RulesChanged
		attribute any
		tooLarge  bool
	}{
		"a regular expression on a text":             {rulesOf(1, events.Matches, texts(1, `"(?:a?){400}b%d"`)), mega[:4096], false},
		"many on a text":                             {rulesOf(10, events.Matches, texts(1, `"(?:a?){400}b%d"`)), mega[:4096], true},
		"one on many texts":                          {rulesOf(1, events.Matches, texts(1, `"(?:a?){400}b%d"`)), elements(250, mega[:4096]), true},
		"one on a text that is too long for it":      {rulesOf(10, events.Matches, texts(1, `"(?:a?){900}b%d"`)), mega, false},
		"many texts searched for in one":             {rulesOf(80, events.Contains, texts(1000, `"ab%d"`)), mega[:4096], true},
		"a few in a large one":                       {rulesOf(1, events.Contains, texts(10, `"ab%d"`)), mega, false},
		"many in a large one":                        {rulesOf(80, events.Contains, texts(1000, `"ab%d"`)), mega, true},
		"many beginnings of many texts":              {rulesOf(80, events.StartsWith, texts(1000, `"aab%d"`)), elements(200_000, "aa"), true},
		"many beginnings of a text":                  {rulesOf(80, events.StartsWith, texts(1000, `"aab%d"`)), mega, false},
		"many conditions on many texts":              {rulesOf(5000, events.In, texts(1, `"b%d"`)), elements(200_000, "aa"), true},
		"many conditions on many numbers":            {rulesOf(5000, events.In, texts(1, `1%d`)), elements(200_000, ParseNumber([]byte("1"))), true},
		"many conditions on many that fit none":      {rulesOf(5000, events.Less, texts(1, `1%d`)), elements(200_000, nil), true},
		"many conditions on a text":                  {rulesOf(5000, events.In, texts(1, `"b%d"`)), mega, true},
		"many conditions on what is nearly a time":   {rulesOf(5000, events.Before, texts(1, `"2026-03-14T15:09:26.%dZ"`)), "2026-03-14T15:09:26." + strings.Repeat("1", 1<<20), true},
		"one condition on an array":                  {rulesOf(1, events.In, texts(1000, `"b%d"`)), elements(200_000, "aa"), false},
		"many versions and what is nearly a version": {rulesOf(80, events.SemverEqual, texts(1000, `"1.2.%d"`)), "1.1." + strings.Repeat("1", 1<<20), true},
	} {
		t.Run(name, func(t *testing.T) {
			flag := flagOf(t, three, on, c.rules)
			began := time.Now()
			_, err := flag.Evaluate(production.ID, &Context{Attributes: map[string]any{"a": c.attribute}})
			t.Log(time.Since(began))
			if errors.Is(err, ErrTooLarge) != c.tooLarge {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// A comparison of a thousand versions with a common prefix once read all their bytes.
func TestEqualVersionsAreFoundWithoutComparingAll(t *testing.T) {
	long := "1.0.0-" + strings.Repeat("1.", 155)
	for _, n := range []int{1, manyValues - 1, manyValues, 1000} {
		var values []json.RawMessage
		for i := range n {
			values = append(values, json.RawMessage(fmt.Sprintf(`"%s%d+build"`, long, i)))
		}
		c, err := compileCondition(events.Condition{Attribute: "a", Op: events.SemverEqual, Values: values},
			"", new(rules.MaxRegexpCost))
		if err != nil {
			t.Fatal(err)
		}
		for version, want := range map[string]bool{
			long + "0": true, long + "0+other": true, fmt.Sprint(long, n-1): true, fmt.Sprint(long, n): false, long + "x": false, "1.0.0": false, long: false,
		} {
			if got := c.holds(&Context{Attributes: map[string]any{"a": version}}, new(shortEffort)); got != want {
				t.Errorf("%s equals one of %d: %t", version, n, got)
			}
		}
		if few := len(c.test.(*versionEqual).texts.few); few >= manyValues {
			t.Errorf("%d versions are compared one by one", few)
		}
	}
}

// Digits and steps into an object count towards the cost of an evaluation.
func TestDigitsAndStepsCount(t *testing.T) {
	deep := any("x")
	for range 99 {
		deep = map[string]any{"b": deep}
	}
	condition := func(attribute string, op events.Operator, values ...json.RawMessage) events.Condition {
		return events.Condition{Attribute: attribute, Op: op, Values: values, Negate: op == events.In}
	}
	path, number := "a"+strings.Repeat(".b", 99), json.RawMessage("1")
	for name, c := range map[string]struct {
		condition events.Condition
		attribute any
		short     bool
	}{
		"a few digits":    {condition("a", events.In, number), ParseNumber([]byte("12")), true},
		"30,000 digits":   {condition("a", events.In, number), ParseNumber([]byte(strings.Repeat("1", 30_000))), false},
		"a short path":    {condition("a", events.Exists), deep, true},
		"a hundred steps": {condition(path, events.Exists), deep, false},
	} {
		t.Run(name, func(t *testing.T) {
			var list []events.Rule
			for i := range 50 {
				r := events.Rule{ID: fmt.Sprint("r", i), Serve: toA}
				for range 49 {
					r.Conditions = append(r.Conditions, c.condition)
				}
				r.Conditions = append(r.Conditions, events.Condition{Attribute: "none", Op: events.Exists})
				list = append(list, r)
			}
			_, err := flagOf(t, three, on, ruled(list...)).EvaluateShort(production.ID, &Context{Attributes: map[string]any{"a": c.attribute}})
			if (err == nil) != c.short || err != nil && !errors.Is(err, ErrTooLarge) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
