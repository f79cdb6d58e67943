package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// describedFact is a fact with its description, unless it is unknown.
type describedFact struct {
	events.Recorded
	state.Description
	unknown error
	name    string // of its resource, empty for a person
}

// describe describes a fact. It must see the facts in their order: later ones lack the names of what they are about.
func (r *replay) describe(e events.Recorded) (f describedFact) {
	f.Recorded = e
	if f.Description, f.unknown = state.Describe(e); f.unknown != nil {
		return f
	}
	switch { // the names of all flags and segments of a tenant would take too much memory
	case r.Flag != nil:
		f.Names = r.flag.Names()
		r.flag.Apply(e)
		maps.Copy(f.Names, r.flag.Names())
	case r.Segment != nil:
		f.Names = r.segment.Names()
		r.segment.Apply(e)
		maps.Copy(f.Names, r.segment.Names())
	}
	id := f.ResourceType + " " + f.ResourceID
	if f.Description.Name != nil && !f.NameIsRole && f.ResourceType != "flag" && f.ResourceType != "segment" {
		r.resources[id] = *f.Description.Name
	}
	f.name = r.resources[id]
	return f
}

// printTable prints a row for each fact.
func (r *replay) printTable(list []describedFact, names map[string]queries.Name) error {
	table := terminal.NewTable(r.out)
	for _, f := range list {
		action, details := words(f)
		at := f.At.UTC().Format(events.RecordedFormat)
		table.Row(at, actorName(f.Actor, names), resourceName(f, names), action, details)
		if r.Diff && f.unknown == nil {
			printChanges(table, f.Description)
		}
	}
	return table.Flush()
}

// words returns the action of a fact, and its details.
func words(f describedFact) (action, details string) {
	if f.unknown != nil {
		return f.Recorded.Name, "unknown here: " + f.unknown.Error()
	}
	_, action, _ = strings.Cut(f.Recorded.Name, ".")
	action = strings.ReplaceAll(strings.TrimPrefix(action, f.ResourceType+"_"), "_", " ")
	var list []string
	if f.Environment != nil && f.ResourceType == "flag" {
		list = append(list, "in "+*f.Environment)
	}
	if summary := f.Summary(); summary != "" {
		list = append(list, summary)
	}
	if f.Reason != "" {
		list = append(list, "“"+f.Reason+"”")
	}
	return action, strings.Join(list, "  ")
}

// printChanges prints what a fact changed: removed lines with -, added ones with +.
func printChanges(table *terminal.Table, d state.Description) {
	line := func(text string) { fmt.Fprintln(table, "      "+terminal.Printable(text)) }
	for _, field := range d.Changes.Fields() {
		c := d.Changes[field]
		from, to := d.Names.Lines(field, c.From), d.Names.Lines(field, c.To)
		if len(from) == 1 && len(to) == 1 {
			line(d.Names.Field(field, c) + ": " + from[0] + " → " + to[0])
			continue
		}
		line(d.Names.Field(field, c))
		for _, text := range from {
			if !slices.Contains(to, text) {
				line("  - " + text)
			}
		}
		for _, text := range to {
			sign := "+ "
			if slices.Contains(from, text) {
				sign = "  "
			}
			line("  " + sign + text)
		}
	}
}

// resourceName names what a fact is about, with its version if that is all of a stream, such as a flag.
func resourceName(f describedFact, names map[string]queries.Name) string {
	switch name := cmp.Or(f.name, f.ResourceID); f.ResourceType {
	case "": // unknown
		return f.Stream
	case "tenant", "subscription":
		return f.ResourceType
	case "oauth_client":
		return "client " + name
	case "evaluation_key":
		return "key " + name
	case "member":
		return "member " + memberName(f.ResourceID, names)
	default:
		if f.Part != nil && *f.Part == "" {
			name += fmt.Sprintf(" v%d", f.Revision)
		}
		return f.ResourceType + " " + name
	}
}
