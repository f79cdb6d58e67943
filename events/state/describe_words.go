package state

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"flagledger/events"
)

const (
	maxSummary = 100 // characters
	maxValue   = 40
)

// Summary says in a few words what the fact changed, beside its action. If that is long, it only names fields, those
// with the longest values first.
func (d Description) Summary() string {
	role, changed := d.Changes["role"]
	if d.NameIsRole && d.Name != nil && (!changed || role.Added()) {
		return "as " + *d.Name
	}
	var names, words []string
	for _, field := range d.Changes.Fields() {
		if field == "enabled" || isOrder(field) && len(d.Changes) > 1 {
			continue // the action says it, or the other fields do
		}
		c := d.Changes[field]
		names, words = append(names, d.Names.Field(field, c)), append(words, d.Names.change(field, c))
	}
	for utf8.RuneCountInString(strings.Join(words, ", ")) > maxSummary {
		longest := -1
		for i := range words {
			if words[i] != names[i] && (longest < 0 || len(words[i]) > len(words[longest])) {
				longest = i
			}
		}
		if longest < 0 {
			break
		}
		words[longest] = names[longest]
	}
	return shorten(strings.Join(words, ", "), maxSummary)
}

// Names has the names of a flag's variations and rules, or of a segment's rules, by id. An id without a name stands for
// itself.
type Names map[string]string

// Names returns the names of the flag's variations and rules.
func (f *Flag) Names() Names {
	n := Names{}
	for _, v := range f.Variations {
		n[v.ID] = v.Name
	}
	for _, rules := range f.Rules {
		for _, r := range rules {
			n[r.ID] = r.Name
		}
	}
	return n
}

// Names returns the names of the segment's rules.
func (s *Segment) Names() Names {
	n := Names{}
	for _, r := range s.Rules {
		n[r.ID] = r.Name
	}
	return n
}

func (n Names) quote(id string) string {
	if name := n[id]; name != "" {
		return jsonText(name)
	}
	return id
}

// Field returns a field's name in words: variation "on" weight. A variation or rule that came or went has its own name.
func (n Names) Field(field string, c FieldChange) string {
	list, rest, inList := strings.Cut(field, ".")
	if !inList || isOrder(field) {
		return field
	}
	id, member, _ := strings.Cut(rest, ".")
	name := n.quote(id)
	for _, v := range []any{c.From, c.To} {
		if own := nameInside(v); own != "" {
			name = jsonText(own)
		}
	}
	return strings.TrimSpace(strings.TrimSuffix(list, "s") + " " + name + " " + member)
}

// Lines returns a field's value in words, in full. Rules and variations take several lines, no value takes none.
func (n Names) Lines(field string, value any) (lines []string) {
	switch v := value.(type) {
	case nil:
		return nil
	case *events.Serve:
		if v == nil {
			return nil
		}
	case shownRule:
		if v.Name != "" {
			lines = []string{"name " + jsonText(v.Name)}
		}
		return append(lines, n.rule(v)...)
	case events.Variation:
		lines = []string{"name " + jsonText(v.Name), "value " + jsonText(v.Value), "weight " + jsonText(v.Weight)}
		if v.Description != "" {
			lines = append(lines, "description "+jsonText(v.Description))
		}
		return lines
	case []events.Prerequisite:
		for _, p := range v {
			lines = append(lines, n.prerequisite(p))
		}
		return lines
	}
	return []string{n.text(field, value)}
}

// Rule returns what a rule demands and serves, a line for each condition.
func (n Names) Rule(r events.Rule) []string { return n.rule(shownRuleOf(r)) }

func (n Names) rule(r shownRule) (lines []string) {
	word := "if "
	for _, c := range r.Conditions {
		line := strings.TrimSpace(word + c.Attribute)
		if c.Negate {
			line += " not"
		}
		line += " " + string(c.Op)
		for i, v := range c.Values {
			if i > 0 {
				line += ","
			}
			line += " " + jsonText(v)
		}
		lines = append(lines, line)
		word = "and "
	}
	if r.Serve == nil {
		return lines
	}
	return append(lines, "→ "+n.Serve(r.Serve))
}

// Serve returns what a rule or a fallthrough serves.
func (n Names) Serve(s *events.Serve) string {
	switch {
	case s == nil:
		return "not set"
	case s.VariationID != "":
		return n.name(s.VariationID)
	case len(s.Rollout) > 0:
		shares := make([]string, len(s.Rollout))
		for i, share := range s.Rollout {
			shares[i] = n.name(share.VariationID) + " " + jsonText(share.Weight)
		}
		return strings.Join(shares, " / ") + " by " + shownServe(s).BucketBy
	}
	return jsonText(s.Value)
}

// name returns the name of a variation, or its id.
func (n Names) name(id string) string {
	if name := n[id]; name != "" {
		return name
	}
	return id
}

// prerequisite returns what a prerequisite demands of the other flag.
func (n Names) prerequisite(p events.Prerequisite) string {
	if p.Off {
		return p.FlagKey + " off"
	}
	served := make([]string, len(p.Serves))
	for i, s := range p.Serves {
		if served[i] = n.name(s.VariationID); s.VariationID == "" {
			served[i] = jsonText(s.Value)
		}
	}
	return p.FlagKey + " serves " + strings.Join(served, " or ")
}

// change says in a few words how a field changed.
func (n Names) change(field string, c FieldChange) string {
	name := n.Field(field, c)
	_, rest, inList := strings.Cut(field, ".")
	from, to := n.text(field, c.From), n.text(field, c.To)
	switch {
	case isOrder(field):
		return strings.TrimSuffix(field, ".order") + " in another order"
	case c.has == neither:
		return name
	case inList && !strings.Contains(rest, "."):
		for _, value := range []any{c.From, c.To} {
			if v, ok := value.(events.Variation); ok {
				name += " (" + Brief(v.Value) + ", weight " + jsonText(v.Weight) + ")"
			}
		}
		switch {
		case c.Added():
			return name + " added"
		case c.Removed():
			return name + " removed"
		}
		return name + " changed"
	case c.Added():
		return name + " " + shorten(to, maxValue)
	default:
		return name + " " + shorten(from, maxValue) + " → " + shorten(to, maxValue)
	}
}

// text returns a value in JSON, but what is served or required, and the order of variations or rules, in words.
func (n Names) text(field string, value any) string {
	switch v := value.(type) {
	case *events.Serve:
		return n.Serve(v)
	case []events.Prerequisite:
		if len(v) == 0 {
			return "none"
		}
		return strings.Join(n.Lines(field, v), ", ")
	case []string:
		if isOrder(field) {
			names := make([]string, len(v))
			for i, id := range v {
				names[i] = n.quote(id)
			}
			return "[" + strings.Join(names, ", ") + "]"
		}
	}
	return jsonText(value)
}

func nameInside(value any) string {
	switch v := value.(type) {
	case shownRule:
		return v.Name
	case events.Variation:
		return v.Name
	}
	return ""
}

// isOrder reports whether a field is the order of variations or rules.
func isOrder(field string) bool { return strings.HasSuffix(field, ".order") }

// Brief returns the beginning of a value in JSON.
func Brief(value any) string { return shorten(jsonText(value), maxValue) }

func jsonText(v any) string {
	text, err := events.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // no value of a fact: those were written as JSON
	}
	return string(text)
}

// shorten cuts a text to a number of characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
