package evaluation

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/rules"
)

func TestConditions(t *testing.T) {
	const long = `1` + "000000000000000000000000000000000000000000000000000000000001"
	for _, c := range []struct {
		op      events.Operator
		values  string
		matches string // matching attributes, as a list
		fails   string // attributes that do not match
	}{
		{events.In, `["pro","team"]`, `["pro","team",["free","pro"]]`, `["Pro","","pr","pro ",null,1,true,{},["free"],[],[["pro"]],{"pro":"pro"}]`},
		{events.In, `["é"]`, `["\u00e9"]`, `["e\u0301"]`},
		{events.In, `["a","b","c","d","e","f","g","h","i","1"]`, `["a","i","1"]`, `["j",1,""]`},
		{events.In, `[1,2,3,4,5,6,7,8,9,10]`, `[1,1.0,10,1e1,0.1e2]`, `[11,"1",0,-1,1.5]`},
		{events.In, `[true]`, `[true,[false,true]]`, `[false,"true",1]`},
		{events.In, `[false,true]`, `[true,false]`, `[null,0]`},
		{events.In, `["1",1]`, `["1",1,1.0]`, `["1.0",true]`},
		{events.In, `[9007199254740993]`, `[9007199254740993,9007199254740993.0,9.007199254740993e15]`, `[9007199254740992,9007199254740994]`},
		{events.In, `[1e400]`, `[1e400,10e399,0.1e401]`, `[2e400,1e401,-1e400,1e308]`},
		{events.In, `[1e-400]`, `[1e-400,0.1e-399]`, `[0,2e-400]`},
		{events.In, `[0]`, `[0,-0,0.00,0e5,-0.0e-7]`, `[0.1,1e-400,"0"]`},
		{events.In, `[0.1]`, `[0.1,0.10,1e-1,100e-3]`, `[0.1000000000000000055511151231257827,0.10000000000000001]`},
		{events.In, `[` + long + `]`, `[` + long + `,` + long + `.0,` + long + `e0]`, `[` + long + `.1,` + long + `0,1e60]`},
		{events.In, `[]`, `[]`, `["",0,null,[]]`},
		{events.Contains, `["b","xyz"]`, `["abc","b",["a","b"],"wxyz"]`, `["","a","B",1,true,null,{"b":1},[["b"]]]`},
		{events.Contains, `[""]`, `["","a"]`, `[null,1,[]]`},
		{events.StartsWith, `["ab"]`, `["abc","ab"]`, `["a","cab","Ab"]`},
		{events.EndsWith, `["@acme.com","@acme.de"]`, `["me@acme.com","@acme.de"]`, `["me@acme.com.example","acme.com",5]`},
		{events.Matches, `["a$"]`, `["` + strings.Repeat("a", 4096) + `"]`, `["` + strings.Repeat("a", 4097) + `"]`},
		{events.Matches, `["^a+$","(?i)XY"]`, `["aaa","wxyz",["b","a"]]`, `["ba","",1,null]`},
		{events.Greater, `[5]`, `[5.1,6,1e400,5.00000000000000000000000000000000001,[1,6]]`, `[5,5.0,4.999,-6,"6",true,null,[]]`},
		{events.Greater, `[7,5]`, `[6,8]`, `[5,4]`},
		{events.GreaterEqual, `[9007199254740993]`, `[9007199254740993,9007199254740994]`, `[9007199254740992]`},
		{events.Less, `[-1]`, `[-1.5,-1e400,-10]`, `[-1,0,1,-0.5,-1e-400]`},
		{events.Less, `[0]`, `[-0.1,-1e-400]`, `[0,-0,0.1,1e-400,1]`},
		{events.LessEqual, `[1,2.50]`, `[2.5,2,0.05,0,-3]`, `[2.51,"2"]`},
		{events.LessEqual, `[]`, `[]`, `[1,-1]`},
		{events.Before, `["2026-03-14T15:09:26Z"]`, `["2026-03-14T15:09:25.999999999Z","2026-03-14t15:09:25z","2025-12-31T23:59:60Z","2026-03-14T16:09:26+02:00"]`, `["2026-03-14T15:09:26Z","2026-03-14T16:09:26+01:00","2027-01-01T00:00:00Z","2026-03-13",20260313,null]`},
		{events.After, `["2026-03-14T15:09:26Z","2025-01-01T00:00:00+05:00"]`, `["2024-12-31T19:00:01Z",["x","2026-01-01T00:00:00Z"]]`, `["2024-12-31T19:00:00Z","tomorrow",""]`},
		{events.SemverEqual, `["1.2.3","2.0.0-rc.1"]`, `["1.2.3","1.2.3+b1","2.0.0-rc.1",["0.0.1","1.2.3"]]`, `["v1.2.3","1.2","1.2.3-0","2.0.0",1.2,null]`},
		{events.SemverGreater, `["1.2.3"]`, `["1.2.10","1.3.0-alpha","2.0.0"]`, `["1.2.3","1.2.3+b","1.2.3-rc.1","1.10","v2.0.0"]`},
		{events.SemverAtLeast, `["1.2.3"]`, `["1.2.3","1.2.3+b","1.2.4-0"]`, `["1.2.3-rc.1","0.9.9"]`},
		{events.SemverLess, `["1.0.0"]`, `["1.0.0-rc.11","0.99.99"]`, `["1.0.0","1.0.0+a","1.0.1-a",0]`},
		{events.SemverAtMost, `["1.0.0-rc.2"]`, `["1.0.0-rc.2","1.0.0-rc.2+b","1.0.0-beta.3"]`, `["1.0.0-rc.11","1.0.0",""]`},
		{events.Exists, `[]`, `["",0,false,{},[],[null]]`, `[null]`},
	} {
		for want, list := range map[bool]string{true: c.matches, false: c.fails} {
			for _, value := range raw(list) {
				x := &Context{Attributes: attributes(`{"a":` + string(value) + `}`)}
				for _, negate := range []bool{false, true} {
					compiled, err := compileCondition(
						events.Condition{Attribute: "a", Op: c.op, Values: raw(c.values), Negate: negate}, "", new(rules.MaxRegexpCost),
					)
					if err != nil {
						t.Fatal(err)
					}
					if got := compiled.holds(x, new(maxEffort)); got != (want != negate) {
						t.Errorf("%s %s %s (negate: %v) is %v", value, c.op, c.values, negate, got)
					}
				}
			}
		}
	}
}

func TestAnAbsentAttributeNeverMatches(t *testing.T) {
	values := map[events.Operator]string{
		events.In:            `["",0,false]`,
		events.Contains:      `[""]`,
		events.StartsWith:    `[""]`,
		events.EndsWith:      `[""]`,
		events.Matches:       `[""]`,
		events.Greater:       `[-1]`,
		events.GreaterEqual:  `[-1]`,
		events.Less:          `[1]`,
		events.LessEqual:     `[1]`,
		events.Before:        `["9999-01-01T00:00:00Z"]`,
		events.After:         `["0000-01-01T00:00:00Z"]`,
		events.SemverEqual:   `["0.0.0"]`,
		events.SemverGreater: `["0.0.0"]`,
		events.SemverAtLeast: `["0.0.0"]`,
		events.SemverLess:    `["9.0.0"]`,
		events.SemverAtMost:  `["9.0.0"]`,
		events.Exists:        `[]`,
	}
	for op, values := range values {
		for _, name := range []string{"a", "b.c", "targetingKey"} {
			c, err := compileCondition(events.Condition{Attribute: name, Op: op, Values: raw(values)}, "", new(rules.MaxRegexpCost))
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []*Context{{}, {Attributes: map[string]any{}}, {Attributes: attributes(`{"b":{"d":1},"targetingKey":"shadow"}`)}, {Attributes: attributes(`{"a":null,"b":null}`)}} {
				c.negate = false
				if c.holds(x, new(maxEffort)) {
					t.Errorf("%s %s %s holds for %v", name, op, values, x.Attributes)
				}
				if c.negate = true; !c.holds(x, new(maxEffort)) {
					t.Errorf("%s %s %s, negated, does not hold for %v", name, op, values, x.Attributes)
				}
			}
		}
	}
}

func TestAttributes(t *testing.T) {
	x := &Context{TargetingKey: "u", Attributes: attributes(`{
		"plain": "1", "a": {"b": "2", "c": {"d": "3"}, "c.d": "never", "": {"": "4"}}, "a.b.x": "5", "a.c": {"d": "never"}, "dotted.name": "6", "dotted": {"name": "never"},
		"null.name": null, "null": {"name": "never"}, "list": [{"b": "never"}], "text": "7", "targetingKey": {"b": "never"}, "targetingKey.c": "8"
	}`)}
	for name, want := range map[string]any{
		"plain": "1", "a.b": "2", "a.c.d": "3", "a..": "4", "a.b.x": "5", "dotted.name": "6", "targetingKey": "u", "targetingKey.c": "8",
		"null.name": nil, "list.b": nil, "list.0": nil, "text.b": nil, "a.b.c": nil, "none": nil, "none.b": nil, "a.none.b": nil, "": nil, ".": nil, "plain.": nil, "targetingKey.b": nil,
	} {
		values := `[]`
		if want != nil {
			values = `["` + want.(string) + `"]`
		}
		c, err := compileCondition(events.Condition{Attribute: name, Op: events.In, Values: raw(values)},
			"", new(rules.MaxRegexpCost))
		if err != nil {
			t.Fatal(err)
		}
		exists, _ := compileCondition(events.Condition{Attribute: name, Op: events.Exists}, "", new(rules.MaxRegexpCost))
		if want != nil && !c.holds(x, new(maxEffort)) || exists.holds(x, new(maxEffort)) != (want != nil) {
			t.Errorf("%q is not %v", name, want)
		}
	}
}

func TestWhatCannotBeCompiled(t *testing.T) {
	for _, c := range []events.Condition{
		{Attribute: "a", Op: "is", Values: raw(`[1]`)},
		{Attribute: "a", Op: events.In, Values: raw(`["a",null]`)},
		{Attribute: "a", Op: events.In, Values: raw(`[{}]`)},
		{Attribute: "a", Op: events.In, Values: []json.RawMessage{nil}},
		{Attribute: "a", Op: events.In, Values: []json.RawMessage{json.RawMessage(`"`)}},
		{Attribute: "a", Op: events.Contains, Values: raw(`[1]`)},
		{Attribute: "a", Op: events.Matches, Values: raw(`["("]`)},
		{Attribute: "a", Op: events.Matches, Values: raw(`[null]`)},
		{Attribute: "a", Op: events.Greater, Values: raw(`["1"]`)},
		{Attribute: "a", Op: events.Before, Values: raw(`["yesterday"]`)},
		{Attribute: "a", Op: events.After, Values: raw(`[2026]`)},
		{Attribute: "a", Op: events.SemverEqual, Values: raw(`["v1.0.0"]`)},
		{Attribute: "a", Op: events.SemverGreater, Values: raw(`["1.0"]`)},
		{Attribute: "a", Op: events.SemverLess, Values: raw(`[1]`)},
	} {
		if _, err := compileCondition(c, "", new(rules.MaxRegexpCost)); err == nil {
			t.Errorf("%s %s is compiled", c.Op, bytes.Join(func() (list [][]byte) {
				for _, v := range c.Values {
					list = append(list, v)
				}
				return list
			}(), []byte(" ")))
		}
	}
}
