package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"flagledger/events"
	"flagledger/projections/models"
	"flagledger/queries"
)

// has reports whether a fact is the tenant's.
func (r *replay) has(e events.Recorded) bool {
	mine, err := r.mine.has(e)
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
		list := make([]toldFact, len(page))
		for i, e := range page {
			list[i] = r.tell(e)
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

// toldFact is a fact, and what the audit trail tells of it unless it is unknown.
type toldFact struct {
	events.Recorded
	models.Description
	unknown error
	name    string // of its resource, where that is no person
}

// tell describes a fact. It must see the facts in their order: later ones do not tell what things are called.
func (r *replay) tell(e events.Recorded) (f toldFact) {
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

// noteNames notes what the variations and the rules of a flag are called, before the fact is printed. Those of many flags are too many.
func (r *replay) noteNames(e events.Recorded) {
	if r.Flag == nil {
		return
	}
	switch fact := e.Fact.(type) {
	case events.FlagCreated:
		clear(r.variations)
		clear(r.rules)
		for _, v := range fact.Variations {
			r.variations[v.ID] = v.Name
		}
	case events.VariationAdded:
		r.variations[fact.Variation.ID] = fact.Variation.Name
	case events.VariationUpdated:
		if fact.Name != nil {
			r.variations[fact.ID] = fact.Name.To
		}
	case events.RulesChanged:
		for _, rule := range fact.Added {
			r.rules[rule.ID] = rule.Name
		}
		for _, change := range fact.Changed {
			r.rules[change.To.ID] = change.To.Name
		}
	}
}

// dropNames forgets what is gone after a fact.
func (r *replay) dropNames(e events.Recorded) {
	switch fact := e.Fact.(type) {
	case events.VariationRemoved:
		delete(r.variations, fact.Variation.ID)
	case events.RulesChanged:
		for _, rule := range fact.Removed {
			delete(r.rules, rule.ID)
		}
	}
}

// namesOf finds the names of the people and clients in facts, as they are today. Where they cannot be read, it tells so once.
func (r *replay) namesOf(ctx context.Context, list []toldFact) map[string]queries.Name {
	var ids []string
	for _, f := range list {
		if f.Actor.Kind != events.SystemActor {
			ids = append(ids, f.Actor.ID)
		}
		if f.ResourceType == "member" {
			ids = append(ids, f.ResourceID)
		}
	}
	return r.findNames(ctx, ids)
}

func (r *replay) findNames(ctx context.Context, ids []string) map[string]queries.Name {
	slices.Sort(ids)
	names, err := r.names.Names(ctx, slices.Compact(ids))
	if err != nil && ctx.Err() == nil && !r.nameless {
		r.nameless = true
		r.log.Warn("names of people and clients cannot be read: ids stand in their place", "err", err)
	}
	return names
}

const erasedUser = "erased user"

// actorName is what an actor is called; known is false for somebody who was erased.
func actorName(by events.Actor, names map[string]queries.Name) (name string, known bool) {
	found, read := names[by.ID]
	switch {
	case by.Kind == events.SystemActor:
		return by.ID + " (system)", true
	case by.Kind == events.ClientActor:
		return cmp.Or(found.Text, by.ID) + " (client)", true
	case read && (!found.Listed || found.Erased):
		return erasedUser, false
	}
	return cmp.Or(found.Text, by.ID), true
}

// replayedFact is a fact in JSON.
type replayedFact struct {
	Version   events.Revision `json:"version"`
	Stream    string          `json:"stream"`
	Recorded  string          `json:"recorded"`
	Fact      string          `json:"fact"`
	ID        string          `json:"id"`
	Data      any             `json:"data"`
	Metadata  any             `json:"metadata"`
	ActorName string          `json:"actorName,omitempty"`
	Changes   json.RawMessage `json:"changes,omitempty"`
	Unknown   string          `json:"unknown,omitempty"` // why this program does not know the fact
}

func (r *replay) printJSON(list []toldFact, names map[string]queries.Name) error {
	for _, f := range list {
		line := replayedFact{
			Version: f.Revision, Stream: f.Stream, Recorded: f.At.UTC().Format(events.RecordedFormat), Fact: f.Name, ID: f.ID.String(),
			Data: stored(withoutSecrets(f.Stored.Data)), Metadata: stored(f.Stored.Metadata),
		}
		if f.Fact != nil {
			data, err := events.Marshal(f.Fact)
			if err != nil {
				return err
			}
			line.Data, line.Metadata = json.RawMessage(withoutSecrets(data)), f.Metadata
		}
		line.ActorName, _ = actorName(f.Actor, names)
		if f.unknown != nil {
			line.Unknown = f.unknown.Error()
		} else if r.Diff {
			line.Changes = f.Changes
		}
		if err := r.putJSON(line); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) putJSON(v any) error {
	text, err := events.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.screen.Write(append(printableJSON(text), '\n'))
	return err
}

// withoutSecrets leaves out what an object has of secrets, which is their hashes.
func withoutSecrets(data []byte) []byte {
	var members map[string]json.RawMessage
	if !bytes.Contains(bytes.ToLower(data), []byte("secret")) || json.Unmarshal(data, &members) != nil {
		return data
	}
	for name := range members {
		if strings.Contains(strings.ToLower(name), "secret") {
			delete(members, name)
		}
	}
	clean, err := events.Marshal(members)
	if err != nil {
		return nil
	}
	return clean
}

// maxColumn is how wide a column grows. What is wider pushes the rest of its line.
const maxColumn = 40

// printLines prints a line for each fact. Columns are as wide as what was printed so far.
func (r *replay) printLines(list []toldFact, names map[string]queries.Name) {
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
func (r *replay) cells(f toldFact, names map[string]queries.Name) []span {
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

// resourceName is what a fact is about, with the version that it gave a flag or a project.
func resourceName(f toldFact, names map[string]queries.Name) string {
	switch f.ResourceType {
	case "": // unknown
		return f.Stream
	case "tenant", "subscription":
		return f.ResourceType
	case "flag":
		return fmt.Sprintf("flag %s v%d", f.ResourceID, f.Revision)
	case "project":
		return fmt.Sprintf("project %s v%d", cmp.Or(f.name, f.ResourceID), f.Revision)
	case "oauth_client":
		return "client " + cmp.Or(f.name, f.ResourceID)
	case "member":
		if names[f.ResourceID].Erased {
			return "member " + erasedUser
		}
		return "member " + cmp.Or(names[f.ResourceID].Text, f.ResourceID)
	}
	return f.ResourceType + " " + cmp.Or(f.name, f.ResourceID)
}

// details are the end of a fact's line.
func (r *replay) details(f toldFact) (spans []span) {
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
