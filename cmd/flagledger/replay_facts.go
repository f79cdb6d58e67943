package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// printFacts prints all facts.
func (r *replay) printFacts(ctx context.Context) error {
	began := r.form.json
	for page, err := range r.facts(ctx) {
		if err != nil {
			return err
		}
		if !began {
			r.header()
			began = true
		}
		list := make([]describedFact, len(page))
		for i, e := range page {
			list[i] = r.describe(e)
		}
		names := r.namesOf(ctx, list)
		if r.form.json {
			err = r.printJSON(list, names)
		} else {
			r.printLines(list, names)
		}
		if err != nil {
			return err
		}
		if err := r.screen.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) header() {
	spans := []span{{bold, "Tenant " + r.Tenant}}
	switch {
	case r.Flag != nil:
		spans = []span{{bold, "Flag " + *r.Flag}, {dim, "  of tenant " + r.Tenant}}
	case r.Project != nil:
		spans = []span{{bold, "Project " + *r.Project}, {dim, "  of tenant " + r.Tenant}}
	}
	r.screen.line(spans...)
	r.screen.line()
}

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
	if r.Flag != nil { // the names of all flags of a tenant would take too much memory
		f.Names = r.flag.Names()
		r.flag.Apply(e)
		maps.Copy(f.Names, r.flag.Names())
	}
	id := f.ResourceType + " " + f.ResourceID
	if f.Description.Name != nil && !f.NameIsRole && f.ResourceType != "flag" {
		r.resources[id] = *f.Description.Name
	}
	f.name = r.resources[id]
	return f
}

// printLines prints a line for each fact, in columns.
func (r *replay) printLines(list []describedFact, names map[string]queries.Name) {
	rows := make([][]span, len(list))
	for i, f := range list {
		rows[i] = r.cells(f, names)
	}
	r.widths = widen(r.widths, rows, 4)
	for i, f := range list {
		r.screen.row(r.widths, rows[i])
		if r.Diff && f.unknown == nil {
			r.printChanges(f.Description)
		}
	}
}

// cells returns four columns of a fact's line, its version or its resource among them, and the rest of the line.
func (r *replay) cells(f describedFact, names map[string]queries.Name) []span {
	at := span{dim, f.At.UTC().Format(events.RecordedFormat)}
	name, known := actorName(f.Actor, names)
	who := span{cyan, name}
	if !known {
		who.style = dim
	}
	cells := []span{at, who, {bold, resourceName(f, names)}}
	if r.stream() != "" {
		cells = []span{{bold, fmt.Sprint(f.Revision)}, at, who}
	}
	if f.unknown != nil {
		return append(cells, span{purple, f.Recorded.Name}, span{purple, "unknown here: " + f.unknown.Error()})
	}
	_, action, _ := strings.Cut(f.Recorded.Name, ".")
	action = strings.ReplaceAll(strings.TrimPrefix(action, f.ResourceType+"_"), "_", " ")
	cells = append(cells, span{actionStyle(action), action})
	if f.Environment != nil && f.ResourceType == "flag" {
		cells = append(cells, span{bold, "in " + *f.Environment})
	}
	if summary := f.Summary(); summary != "" {
		cells = append(cells, span{plain, summary})
	}
	if f.Reason != "" {
		cells = append(cells, span{dim, "“" + f.Reason + "”"})
	}
	return cells
}

func actionStyle(action string) style {
	words := strings.Fields(action)
	switch words[len(words)-1] {
	case "created", "added", "enabled", "joined", "invited":
		return green
	case "deleted", "removed", "disabled":
		return red
	}
	return yellow
}

const oneLineWidth = 100 // characters that the two values of a change may take on one line

// printChanges prints what a fact changed, before and after.
func (r *replay) printChanges(d state.Description) {
	var rows [][]span
	for _, field := range d.Changes.Fields() {
		c := d.Changes[field]
		name := d.Names.Field(field, c)
		from, to := d.Names.Lines(field, c.From), d.Names.Lines(field, c.To)
		sign := span{yellow, "      ~ " + name}
		switch {
		case len(from) == 0 && len(to) > 0:
			sign = span{green, "      + " + name}
		case len(to) == 0 && len(from) > 0:
			sign = span{red, "      - " + name}
		}
		if len(from) == 1 && len(to) == 1 && len(from[0])+len(to[0]) <= oneLineWidth {
			rows = append(rows, []span{sign, {plain, from[0] + " → " + to[0]}})
			continue
		}
		if len(from)+len(to) == 1 {
			rows = append(rows, []span{sign, {plain, strings.Join(append(from, to...), "")}})
			continue
		}
		rows = append(rows, []span{sign})
		for _, line := range from {
			at := slices.Index(to, line)
			if at < 0 {
				rows = append(rows, []span{{red, "          - " + line}})
				continue
			}
			for _, added := range to[:at] {
				rows = append(rows, []span{{green, "          + " + added}})
			}
			rows, to = append(rows, []span{{plain, "            " + line}}), to[at+1:]
		}
		for _, added := range to {
			rows = append(rows, []span{{green, "          + " + added}})
		}
	}
	widths := widen(nil, rows, 1)
	for _, row := range rows {
		r.screen.row(widths, row)
	}
}

// resourceName names what a fact is about, with the version that it gave a flag or a project.
func resourceName(f describedFact, names map[string]queries.Name) string {
	switch name := cmp.Or(f.name, f.ResourceID); f.ResourceType {
	case "": // unknown
		return f.Stream
	case "tenant", "subscription":
		return f.ResourceType
	case "flag", "project":
		return fmt.Sprintf("%s %s v%d", f.ResourceType, name, f.Revision)
	case "oauth_client":
		return "client " + name
	case "member":
		return "member " + memberName(f.ResourceID, names)
	default:
		return f.ResourceType + " " + name
	}
}
