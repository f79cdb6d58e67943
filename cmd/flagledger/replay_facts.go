package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"flagledger/events"
	"flagledger/projections/models"
	"flagledger/queries"
)

// belongs notes a project that the tenant makes, and reports whether a fact is the tenant's.
func (r *replay) belongs(e events.Recorded) bool {
	mine, err := r.mine.belongs(e)
	if err != nil { // a newer release has made the project
		var created events.ProjectCreated
		_ = json.Unmarshal(e.Stored.Data, &created)
		if mine = created.TenantID == r.Tenant; mine {
			r.mine.projects[e.Stream] = true
		}
	}
	return mine
}

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

// describedFact is a fact, and what the audit trail tells of it unless it is unknown.
type describedFact struct {
	events.Recorded
	models.Description
	unknown error
	name    string // of its resource, where that is no person
}

// describe describes a fact. It must see the facts in their order: later ones do not tell what things are called.
func (r *replay) describe(e events.Recorded) (f describedFact) {
	f.Recorded = e
	if f.Description, f.unknown = models.Describe(e); f.unknown != nil {
		return f
	}
	if f.ResourceType == "project" || f.ResourceType == "oauth_client" {
		id := f.ResourceType + " " + f.ResourceID
		if f.ResourceName != "" {
			r.resources[id] = f.ResourceName
		}
		f.name = r.resources[id]
		switch e.Fact.(type) {
		case events.ProjectDeleted, events.OAuthClientDeleted:
			delete(r.resources, id)
		}
	}
	f.name = cmp.Or(f.name, f.ResourceName)
	return f
}

// maxColumn is how wide a column grows. What is wider pushes the rest of its line.
const maxColumn = 40

// printLines prints a line for each fact. Columns are as wide as what was printed so far.
func (r *replay) printLines(list []describedFact, names map[string]queries.Name) {
	rows := make([][]span, len(list))
	for i, f := range list {
		rows[i] = r.cells(f, names)
		for c, cell := range rows[i] {
			if c == len(r.widths) {
				r.widths = append(r.widths, 0)
			}
			if width := columns(cell.text); width <= maxColumn {
				r.widths[c] = max(r.widths[c], width)
			}
		}
	}
	for i, f := range list {
		r.noteNames(f.Recorded)
		end := r.details(f)
		for c, cell := range rows[i] {
			switch {
			case c == 0 && r.stream() != "": // a number
				r.screen.put(span{plain, strings.Repeat(" ", max(0, r.widths[0]-columns(cell.text)))}, cell, span{plain, "  "})
			case c == len(rows[i])-1 && len(end) == 0:
				r.screen.put(cell)
			default:
				r.screen.padded(r.widths[c], cell)
				r.screen.put(span{plain, "  "})
			}
		}
		r.screen.line(end...)
		if r.Diff && f.unknown == nil {
			r.printChanges(f)
		}
		r.dropNames(f.Recorded)
	}
}

// cells are the columns of a fact's line: its version or its resource among them, and who did what when.
func (r *replay) cells(f describedFact, names map[string]queries.Name) []span {
	at := span{dim, f.At.UTC().Format(events.RecordedFormat)}
	name, known := actorName(f.Actor, names)
	who := span{cyan, name}
	if !known {
		who.style = dim
	}
	action := span{purple, f.Name}
	if f.unknown == nil {
		_, words, _ := strings.Cut(f.Name, ".")
		action.text = strings.ReplaceAll(strings.TrimPrefix(words, f.ResourceType+"_"), "_", " ")
		action.style = actionStyle(f.Name)
	}
	if r.stream() != "" {
		return []span{{bold, fmt.Sprint(f.Revision)}, at, who, action}
	}
	return []span{at, who, {bold, resourceName(f, names)}, action}
}

func actionStyle(name string) style {
	for _, end := range []string{"created", "added", "enabled", "joined", "invited"} {
		if strings.HasSuffix(name, end) {
			return green
		}
	}
	for _, end := range []string{"deleted", "removed", "disabled"} {
		if strings.HasSuffix(name, end) {
			return red
		}
	}
	return yellow
}

// details are the end of a fact's line.
func (r *replay) details(f describedFact) (spans []span) {
	if f.unknown != nil {
		return []span{{purple, "unknown here: " + f.unknown.Error()}}
	}
	add := func(s style, text string) {
		if text != "" && len(spans) > 0 {
			text = "  " + text
		}
		spans = append(spans, span{s, text})
	}
	if f.Environment != "" && f.ResourceType == "flag" {
		add(bold, "in "+f.Environment)
	}
	if summary := r.summary(f.Recorded); summary != "" {
		add(plain, shortened(summary, maxSummary))
	}
	if f.Reason != "" {
		add(dim, "“"+f.Reason+"”")
	}
	return spans
}
