package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"flagledger/events"
)

// difference is a value that a fact changed. Before or after it may be absent.
type difference struct {
	path     string
	from, to any
}

// absent stands in place of a value where there is none, which null is not.
type absent struct{}

// differences finds what changed in the changes of a fact, down to single values.
func differences(changes json.RawMessage) (list []difference) {
	var fields map[string]map[string]any
	d := json.NewDecoder(bytes.NewReader(changes))
	d.UseNumber() // as they are written
	if d.Decode(&fields) != nil {
		return nil
	}
	side := func(field map[string]any, name string) any {
		if v := field[name]; v != nil {
			return v
		}
		return absent{}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list = appendDifferences(list, name, side(fields[name], "from"), side(fields[name], "to"))
	}
	return list
}

// appendDifferences compares objects member by member, and lists that hold objects element by element.
func appendDifferences(list []difference, path string, from, to any) []difference {
	a, b := members(from), members(to)
	_, noFrom := from.(absent)
	_, noTo := to.(absent)
	if len(a)+len(b) == 0 || a == nil && !noFrom || b == nil && !noTo {
		if jsonText(from) != jsonText(to) {
			list = append(list, difference{path, from, to})
		}
		return list
	}
	names := maps.Clone(a)
	if names == nil {
		names = map[string]any{}
	}
	maps.Copy(names, b)
	for _, name := range slices.SortedFunc(maps.Keys(names), byNumber) {
		if name == "id" && strings.HasSuffix(path, "."+jsonWord(names[name])) {
			continue // the path has it
		}
		list = appendDifferences(list, path+"."+name, memberOf(a, name), memberOf(b, name))
	}
	return list
}

// members are those of an object, or the elements of a list that holds objects, by number; nil for other values.
func members(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		isObject := func(v any) bool { _, ok := v.(map[string]any); return ok }
		if !slices.ContainsFunc(v, isObject) {
			return nil
		}
		numbered := map[string]any{}
		for i, element := range v {
			numbered[strconv.Itoa(i)] = element
		}
		return numbered
	}
	return nil
}

func memberOf(members map[string]any, name string) any {
	if v, ok := members[name]; ok {
		return v
	}
	return absent{}
}

// byNumber orders numbers by their size, and other names by their letters.
func byNumber(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return x - y
	}
	return strings.Compare(a, b)
}

// jsonWord is a text as it is, and empty for other values.
func jsonWord(v any) string {
	word, _ := v.(string)
	return word
}

// jsonText is a value in JSON, empty for one that is absent.
func jsonText(v any) string {
	if _, none := v.(absent); none {
		return ""
	}
	text, err := events.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text)
}

const (
	indent       = "      "
	oneLineWidth = 100 // characters that the two values of a difference may take on one line
)

// printChanges prints what a fact changed, a line for each value, or two for long ones.
func (r *replay) printChanges(f describedFact) {
	list := differences(f.Changes)
	if fact, ok := f.Fact.(events.RulesChanged); ok {
		for _, rule := range fact.Removed {
			r.printRule(red, "-", rule)
		}
		for _, rule := range fact.Added {
			r.printRule(green, "+", rule)
		}
		list = ruleDifferences(fact, list)
	}
	width := 0
	for i := range list {
		list[i].path = r.pathText(list[i].path)
		if w := columns(list[i].path); w <= maxColumn {
			width = max(width, w)
		}
	}
	for _, d := range list {
		r.printDifference(d, width)
	}
}

func (r *replay) printDifference(d difference, width int) {
	from, to := r.valueText(d.path, d.from), r.valueText(d.path, d.to)
	s := r.screen
	begin := func(style style, sign string) {
		s.put(span{plain, indent}, span{style, sign + " "})
		s.padded(width, span{plain, d.path})
		s.put(span{plain, "  "})
	}
	if from != "" && to != "" && len(from)+len(to) <= oneLineWidth {
		begin(yellow, "~")
		s.line(span{red, from}, span{dim, " → "}, span{green, to})
		return
	}
	if from != "" {
		begin(red, "-")
		s.line(span{red, from})
	}
	if to != "" {
		begin(green, "+")
		s.line(span{green, to})
	}
}

// ruleDifferences leaves out rules that came or went, which are printed as a whole.
func ruleDifferences(fact events.RulesChanged, list []difference) []difference {
	return slices.DeleteFunc(list, func(d difference) bool {
		ofRule := func(rule events.Rule) bool { return strings.HasPrefix(d.path, "rules."+rule.ID+".") }
		return slices.ContainsFunc(fact.Added, ofRule) || slices.ContainsFunc(fact.Removed, ofRule)
	})
}

func (r *replay) printRule(style style, sign string, rule events.Rule) {
	r.screen.line(span{plain, indent}, span{style, sign + " rule " + r.nameText(rule.ID)})
	r.ruleLines(indent+"    ", rule)
}

// ruleLines prints the conditions of a rule and what it serves.
func (r *replay) ruleLines(indent string, rule events.Rule) {
	for n, c := range rule.Conditions {
		word := "and "
		if n == 0 {
			word = "if  "
		}
		r.screen.line(span{dim, indent + word}, span{plain, conditionText(c)})
	}
	r.screen.line(span{dim, indent + "→   "}, span{cyan, r.served(&rule.Serve)})
}

// pathText names variations and rules in a path, where it is known what they are called.
func (r *replay) pathText(path string) string {
	for _, list := range []string{"variations.", "rules."} {
		if rest, ok := strings.CutPrefix(path, list); ok && rest != "order" {
			id, member, _ := strings.Cut(rest, ".")
			return strings.TrimSuffix(list, "s.") + " " + r.nameText(id) + " " + member
		}
	}
	return path
}

// nameText is what a variation or a rule is called, or its id.
func (r *replay) nameText(id string) string {
	if name := cmp.Or(r.variations[id], r.rules[id]); name != "" {
		return jsonText(name)
	}
	return id
}

// valueText is a value in JSON, with names in place of the ids of variations and rules.
func (r *replay) valueText(path string, v any) string {
	switch v := v.(type) {
	case string:
		if strings.HasSuffix(path, "variationId") {
			return r.nameText(v)
		}
	case []any:
		if strings.HasSuffix(path, ".order") {
			names := make([]string, len(v))
			for i, id := range v {
				names[i] = r.nameText(jsonWord(id))
			}
			return "[" + strings.Join(names, ", ") + "]"
		}
	}
	return jsonText(v)
}
