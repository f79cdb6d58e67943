package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http"
	"flagledger/queries"
)

func (r *replay) printFlag(ctx context.Context, m queries.Moment) error {
	var f state.Flag
	last, err := r.foldUntil(ctx, m, func(e events.Recorded) bool {
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
		_, err := r.screen.Write(append(terminal.PrintableJSON(http.FlagVersion(f, environments)), '\n'))
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

func (r *replay) flagFields(f state.Flag) {
	r.field("name", f.Name)
	r.field("description", f.Description)
	r.field("type", string(f.Type))
	r.field("status", string(f.Status))
	r.field("default", jsonText(f.DefaultValue))
	r.field("project", f.ProjectID)
	r.field("tags", strings.Join(f.Tags, ", "))
	if f.Permanent {
		r.field("permanent", "yes")
	}
	r.field("id", f.ID)
	r.field("salt", f.Salt)
	r.field("created", f.CreatedAt.UTC().Format(events.RecordedFormat))
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
