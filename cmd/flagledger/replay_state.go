package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http"
	"flagledger/queries"
)

// printState prints what was so at a moment.
func (r *replay) printState(ctx context.Context, m queries.Moment) (err error) {
	switch {
	case r.Flag != nil:
		err = r.printFlag(ctx, m)
	case r.Project != nil:
		err = r.printProject(ctx, m)
	default:
		err = r.printTenant(ctx, m.At)
	}
	if err == nil {
		err = r.screen.Flush()
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	return err
}

// until adds up the facts of the stream up to a moment, and returns the last. Those that this program does not know are left out, which it tells.
func (r *replay) until(ctx context.Context, m queries.Moment, apply func(events.Recorded) (known bool)) (last events.Recorded, err error) {
	var omitted omittedFacts
	began := false
	for e, err := range r.store.Read(ctx, r.stream(), 0) {
		if err != nil {
			return last, err
		}
		if !began && r.Project != nil && !r.has(e) {
			break // another tenant's
		}
		began = true
		if m.Before(e) {
			break
		}
		if last = e; !apply(e) {
			omitted.note(e)
		}
	}
	r.warn(omitted)
	switch {
	case !began:
		return last, r.none()
	case last.Revision == 0:
		return last, fmt.Errorf("%w by then", r.none())
	case m.Version > last.Revision:
		return last, fmt.Errorf("there is no version %d: the last is %d", m.Version, last.Revision)
	}
	return last, nil
}

// omittedFacts are facts that a state leaves out, because this program does not know them.
type omittedFacts struct {
	count int
	first events.Recorded
}

func (o *omittedFacts) note(e events.Recorded) {
	if o.count++; o.count == 1 {
		o.first = e
	}
}

func (r *replay) warn(o omittedFacts) {
	if o.count > 0 {
		r.log.Warn("what is printed leaves out facts that this release does not know", "facts", o.count, "first", o.first.Name, "stream", o.first.Stream, "version", o.first.Revision)
	}
}

func (r *replay) printFlag(ctx context.Context, m queries.Moment) error {
	var f state.Flag
	last, err := r.until(ctx, m, func(e events.Recorded) bool {
		_, known := e.Fact.(events.FlagFact)
		if known {
			f.Apply(e)
		}
		return known
	})
	if err != nil {
		return err
	}
	var environments []events.EnvironmentRef
	if f.Exists {
		if environments, err = r.environmentsAt(ctx, cmp.Or(m.At, last.At)); err != nil {
			return err
		}
	}
	if r.form.json {
		_, err := r.screen.Write(append(printableJSON(http.FlagVersion(f, environments)), '\n'))
		return err
	}
	r.stateHeader("Flag "+*r.Flag, f.Exists, last, m.At)
	if f.Exists {
		r.flagFields(f)
		for _, e := range environments {
			r.flagIn(f, e)
		}
	}
	return nil
}

// environmentsAt are the environments of the tenant at a time, in the order of their creation.
func (r *replay) environmentsAt(ctx context.Context, at time.Time) (list []events.EnvironmentRef, err error) {
	for e, err := range r.store.Read(ctx, events.TenantStream(r.Tenant), 0) {
		if err != nil {
			return nil, err
		}
		if e.At.After(at) {
			break
		}
		list = environmentsAfter(list, e.Fact)
	}
	return list, nil
}

func environmentsAfter(list []events.EnvironmentRef, fact events.Fact) []events.EnvironmentRef {
	switch fact := fact.(type) {
	case events.EnvironmentAdded:
		return append(list, fact.Environment)
	case events.EnvironmentDeleted:
		return slices.DeleteFunc(list, func(e events.EnvironmentRef) bool { return e.ID == fact.Environment.ID })
	}
	return list
}

// stateHeader tells what is printed, and of when. last is the last fact of it.
func (r *replay) stateHeader(what string, exists bool, last events.Recorded, at time.Time) {
	words := []span{{bold, what}}
	if !exists {
		words = append(words, span{red, "  deleted"})
	}
	words = append(words, span{plain, fmt.Sprintf("  version %d", last.Revision)}, span{dim, " of " + last.At.UTC().Format(events.RecordedFormat)})
	if !at.IsZero() {
		words = append(words, span{dim, ", at " + at.UTC().Format(time.RFC3339Nano)})
	}
	r.screen.line(words...)
	r.screen.line()
}

const fieldWidth = 14

// field prints a field, unless it is empty.
func (r *replay) field(name, value string) {
	if value != "" {
		r.screen.put(span{plain, "  "})
		r.screen.padded(fieldWidth, span{dim, name})
		r.screen.line(span{plain, value})
	}
}

func (r *replay) flagFields(f state.Flag) {
	r.field("name", f.Name)
	r.field("description", f.Description)
	r.field("type", string(f.Type))
	r.field("status", string(f.Status))
	r.field("default", jsonText(f.DefaultValue))
	r.field("project", f.ProjectID)
	r.field("tags", strings.Join(f.Tags, ", "))
	r.field("id", f.ID)
	r.field("salt", f.Salt)
	r.field("created", f.CreatedAt.UTC().Format(time.RFC3339Nano))
	if len(f.Variations) == 0 {
		return
	}
	r.screen.line()
	r.screen.line(span{bold, "  variations"})
	names, weights := 0, 0
	for _, v := range f.Variations {
		r.variations[v.ID] = v.Name
		names, weights = max(names, columns(v.Name)), max(weights, columns(jsonText(v.Weight)))
	}
	for _, v := range f.Variations {
		r.screen.put(span{plain, "    "})
		r.screen.padded(min(names, maxColumn), span{cyan, v.Name})
		r.screen.put(span{dim, "  weight "})
		r.screen.padded(weights, span{plain, jsonText(v.Weight)})
		r.screen.line(span{plain, "  " + jsonText(v.Value)})
	}
}

// flagIn prints what a flag was in an environment.
func (r *replay) flagIn(f state.Flag, e events.EnvironmentRef) {
	r.screen.line()
	enabled := span{red, "off"}
	if f.Enabled[e.ID] {
		enabled = span{green, "on"}
	}
	r.screen.line(span{plain, "  in "}, span{bold, e.Name}, span{plain, "  "}, enabled)
	for i, rule := range f.Rules[e.ID] {
		r.screen.line(span{plain, fmt.Sprintf("    %d. ", i+1)}, span{plain, cmp.Or(rule.Name, "rule "+rule.ID)})
		r.ruleLines("       ", rule)
	}
	if f.Enabled[e.ID] || len(f.Rules[e.ID]) > 0 || f.FallthroughIn(e.ID) != nil {
		r.screen.line(span{dim, "    else "}, span{cyan, r.otherwise(f, e.ID)})
	}
}

// otherwise is what a flag serves where no rule matches.
func (r *replay) otherwise(f state.Flag, environmentID string) string {
	var split events.Serve
	for _, v := range f.Variations {
		if v.Weight > 0 {
			split.Rollout = append(split.Rollout, events.Share{VariationID: v.ID, Weight: v.Weight})
		}
	}
	switch serve := f.FallthroughIn(environmentID); {
	case serve != nil:
		return r.served(serve)
	case split.Rollout != nil:
		return r.served(&split)
	case f.Type == events.BooleanFlag:
		return "true"
	}
	return "the default"
}

func conditionText(c events.Condition) string {
	values := make([]string, len(c.Values))
	for i, v := range c.Values {
		values[i] = jsonText(v)
	}
	words := c.Attribute + " "
	if c.Negate {
		words += "not "
	}
	return strings.TrimSpace(words + string(c.Op) + " " + strings.Join(values, ", "))
}
