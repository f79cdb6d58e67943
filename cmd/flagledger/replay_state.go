package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http"
	"flagledger/queries"
)

// printState prints the state at a moment.
func (r *replay) printState(ctx context.Context, m queries.Moment) (err error) {
	if m.Version == 0 {
		switch err := queries.WaitUntilPast(ctx, r.store, m.At); {
		case errors.Is(err, queries.ErrFuture):
			return fmt.Errorf("replay: --at %w; it is %q", err, *r.At)
		case err != nil:
			return fmt.Errorf("replay: %w", err)
		}
	}
	switch {
	case r.Flag != nil:
		err = r.printFlag(ctx, m)
	case r.Project != nil:
		err = r.printProject(ctx, m)
	default:
		err = r.printTenant(ctx, m.At)
	}
	return cmp.Or(err, r.screen.Flush())
}

// fold applies the facts of a stream up to a moment, and returns the last of them.
func (r *replay) fold(
	facts iter.Seq2[events.Recorded, error], m queries.Moment, apply func(events.Recorded),
) (last events.Recorded, err error) {
	for e, err := range facts {
		if err != nil {
			return last, err
		}
		if m.Before(e) {
			break
		}
		if last = e; r.known(e) {
			apply(e)
		}
	}
	switch {
	case last.Revision == 0:
		return last, fmt.Errorf("%w by then", r.notFound())
	case m.Version > last.Revision:
		return last, fmt.Errorf("there is no version %d: the last is %d", m.Version, last.Revision)
	}
	return last, nil
}

// known reports whether this program knows a fact, and warns of the first that it does not.
func (r *replay) known(e events.Recorded) bool {
	_, err := state.Describe(e)
	if err != nil && !r.incomplete {
		r.incomplete = true
		r.log.Warn("what is printed leaves out facts that this release does not know", "first", e.Name, "stream", e.Stream,
			"version", e.Revision)
	}
	return err == nil
}

func (r *replay) printFlag(ctx context.Context, m queries.Moment) error {
	var f state.Flag
	last, err := r.fold(r.streamFacts(ctx), m, f.Apply)
	if err != nil {
		return err
	}
	var t state.Tenant
	if f.Exists {
		then := cmp.Or(m.At, last.At)
		for e, err := range r.store.Read(ctx, events.TenantStream(r.Tenant), 0) {
			if err != nil {
				return err
			}
			if e.At.After(then) {
				break
			}
			if r.known(e) {
				t.Apply(e)
			}
		}
	}
	if r.form.json {
		_, err := r.screen.Write(append(terminal.PrintableJSON(http.FlagVersion(f, t.Environments)), '\n'))
		return err
	}
	r.stateHeader("Flag "+*r.Flag, f.Exists, last, m.At)
	if f.Exists {
		r.flagFields(f)
		for _, e := range t.Environments {
			r.flagIn(f, e)
		}
	}
	return nil
}

func (r *replay) flagFields(f state.Flag) {
	r.field("name", f.Name)
	r.field("description", f.Description)
	r.field("type", string(f.Type))
	r.field("status", string(f.Status))
	r.field("default", string(f.DefaultValue))
	r.field("project", f.ProjectID)
	r.field("tags", strings.Join(f.Tags, ", "))
	if f.Permanent {
		r.field("permanent", "yes")
	}
	r.field("owner", f.Owner)
	r.field("id", f.ID)
	r.field("salt", f.Salt)
	r.field("created", f.CreatedAt.UTC().Format(events.RecordedFormat))
	var links, variations [][]span
	for _, link := range f.Links {
		links = append(links, []span{{cyan, link.Title}, {plain, link.URL}})
	}
	r.table("links", links)
	for _, v := range f.Variations {
		weight := "weight " + state.Brief(v.Weight)
		variations = append(variations, []span{{cyan, v.Name}, {dim, weight}, {plain, string(v.Value)}})
	}
	r.table("variations", variations)
}

// flagIn prints the flag in an environment.
func (r *replay) flagIn(f state.Flag, e events.EnvironmentRef) {
	r.screen.line()
	enabled := span{red, "off"}
	if f.Enabled.Has(e.ID) {
		enabled = span{green, "on"}
	}
	r.screen.line(span{plain, "  in "}, span{bold, e.Name}, span{plain, "  "}, enabled)
	names := f.Names()
	for i, rule := range f.Rules[e.ID] {
		r.screen.line(span{plain, fmt.Sprintf("    %d. %s", i+1, cmp.Or(rule.Name, "rule "+rule.ID))})
		for _, line := range names.Rule(rule) {
			r.screen.line(span{plain, "       " + line})
		}
	}
	if f.Enabled.Has(e.ID) || len(f.Rules[e.ID]) > 0 || f.FallthroughIn(e.ID) != nil {
		r.screen.line(span{dim, "    else "}, span{cyan, otherwise(f, e.ID, names)})
	}
}

// otherwise returns what a flag serves if no rule matches.
func otherwise(f state.Flag, environmentID string, names state.Names) string {
	var split events.Serve
	for _, v := range f.Variations {
		if v.Weight > 0 {
			split.Rollout = append(split.Rollout, events.Share{VariationID: v.ID, Weight: v.Weight})
		}
	}
	switch serve := f.FallthroughIn(environmentID); {
	case serve != nil:
		return names.Serve(serve)
	case split.Rollout != nil:
		return names.Serve(&split)
	case f.Type == events.BooleanFlag:
		return "true"
	}
	return "the default"
}

// projectState is a project in JSON.
type projectState struct {
	ID          string `json:"id"`
	TenantID    string `json:"tenantId"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Color       string `json:"color"`
}

// showProject shows a project, whose creation may be unknown to this program.
func (r *replay) showProject(stream string, p state.Project) projectState {
	return projectState{strings.TrimPrefix(stream, events.ProjectStream("")), r.Tenant, p.Name, p.Description, p.Color}
}

func (r *replay) printProject(ctx context.Context, m queries.Moment) error {
	var p state.Project
	last, err := r.fold(r.streamFacts(ctx), m, p.Apply)
	if err != nil {
		return err
	}
	var shown *projectState
	if _, deleted := last.Fact.(events.ProjectDeleted); !deleted {
		shown = new(r.showProject(r.stream(), p))
	}
	if r.form.json {
		return r.putJSON(struct {
			Version  events.Revision `json:"version"`
			Recorded string          `json:"recorded"`
			Project  *projectState   `json:"project"`
		}{last.Revision, last.At.UTC().Format(events.RecordedFormat), shown})
	}
	r.stateHeader("Project "+*r.Project, shown != nil, last, m.At)
	if shown != nil {
		r.field("name", p.Name)
		r.field("description", p.Description)
		r.field("color", p.Color)
		r.field("tenant", r.Tenant)
	}
	return nil
}

// stateHeader prints what the state is of, and when. last is its last fact.
func (r *replay) stateHeader(what string, exists bool, last events.Recorded, at time.Time) {
	words := []span{{bold, what}}
	if !exists {
		words = append(words, span{red, "  deleted"})
	}
	words = append(words, span{plain, fmt.Sprintf("  version %d", last.Revision)},
		span{dim, " of " + last.At.UTC().Format(events.RecordedFormat)})
	if !at.IsZero() {
		words = append(words, span{dim, ", at " + at.UTC().Format(time.RFC3339Nano)})
	}
	r.screen.line(words...)
	r.screen.line()
}

// field prints a field, unless it is empty.
func (r *replay) field(name, value string) {
	if value != "" {
		r.screen.row([]int{14}, []span{{dim, "  " + name}, {plain, value}})
	}
}

// table prints rows under a title, unless there are none.
func (r *replay) table(title string, rows [][]span) {
	if len(rows) == 0 {
		return
	}
	r.screen.line()
	r.screen.line(span{bold, "  " + title}, span{dim, fmt.Sprintf("  %d", len(rows))})
	for _, row := range rows {
		row[0].text = "    " + row[0].text
	}
	widths := widen(nil, rows, len(rows[0]))
	for _, row := range rows {
		r.screen.row(widths, row)
	}
}
