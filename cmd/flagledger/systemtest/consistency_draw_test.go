package systemtest

import (
	"encoding/json"

	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

// drawCommand draws a command on a flag, valid or not.
func drawCommand(t *rapid.T, key string, f state.Flag) commands.Command[state.Flag] {
	ref := commands.FlagRef{TenantID: "t", Key: key}
	kind := f.Type
	if !f.Exists {
		kind = rapid.SampledFrom([]events.FlagType{events.BooleanFlag, events.StringFlag, events.NumberFlag, events.JSONFlag}).
			Draw(t, "type")
	}
	if !f.Exists && rapid.IntRange(0, 9).Draw(t, "create") > 0 {
		create := commands.CreateFlag{
			TenantID:     "t",
			Key:          key,
			ID:           commands.NewID(),
			Type:         kind,
			Name:         maybe(t, drawText),
			Description:  drawText(t),
			Tags:         drawTags(t),
			Permanent:    rapid.Bool().Draw(t, "permanent"),
			ClientSide:   rapid.Bool().Draw(t, "clientSide"),
			Owner:        drawText(t),
			Links:        drawLinks(t),
			OffServes:    maybe(t, drawOffServes),
			Salt:         commands.NewSalt(),
			DefaultValue: maybeValue(t, kind),
		}
		for range rapid.IntRange(0, 3).Draw(t, "variations") {
			create.Variations = append(create.Variations, drawVariation(t, kind))
		}
		return create
	}
	variation := "none"
	if len(f.Variations) > 0 {
		variation = rapid.SampledFrom(f.Variations).Draw(t, "variation").ID
	}
	f.Type = kind
	environment := rapid.SampledFrom(environments).Draw(t, "environment")
	all := []string{
		"update",
		"update",
		"switch",
		"switch",
		"add",
		"add",
		"change",
		"change",
		"remove",
		"rules",
		"rules",
		"rules",
		"fallthrough",
		"fallthrough",
		"delete",
		"create",
	}
	switch rapid.SampledFrom(all).Draw(t, "command") {
	case "update":
		return commands.UpdateFlag{
			FlagRef:      ref,
			Name:         maybe(t, drawText),
			Description:  maybe(t, drawText),
			DefaultValue: maybeValue(t, kind),
			Tags:         maybe(t, drawTags),
			Permanent:    maybe(t, func(t *rapid.T) bool { return rapid.Bool().Draw(t, "permanent") }),
			ClientSide:   maybe(t, func(t *rapid.T) bool { return rapid.Bool().Draw(t, "clientSide") }),
			Owner:        maybe(t, drawText),
			Links:        maybe(t, drawLinks),
			OffServes:    maybe(t, drawOffServes),
			Status: maybe(t, func(t *rapid.T) events.FlagStatus {
				return rapid.SampledFrom([]events.FlagStatus{events.ActiveFlag, events.ActiveFlag, events.InactiveFlag, events.ArchivedFlag}).
					Draw(t, "status")
			}),
		}
	case "switch":
		return commands.SwitchFlag{FlagRef: ref, Environment: environment, On: rapid.IntRange(0, 3).Draw(t, "on") > 0}
	case "add":
		return commands.AddVariation{FlagRef: ref, Variation: drawVariation(t, kind)}
	case "change":
		return commands.UpdateVariation{
			FlagRef:     ref,
			ID:          variation,
			Name:        maybe(t, drawText),
			Value:       maybeValue(t, kind),
			Description: maybe(t, drawText),
			Weight:      maybe(t, drawWeight),
		}
	case "remove":
		return commands.RemoveVariation{FlagRef: ref, ID: variation, Environments: environments}
	case "rules":
		return drawRules(t, f, ref, environment)
	case "fallthrough":
		set := commands.SetFallthrough{
			FlagRef:     ref,
			Environment: environment,
			Unset:       rapid.IntRange(0, 3).Draw(t, "unset") == 0,
		}
		if !set.Unset {
			set.Serve = drawServe(t, f)
		}
		return set
	case "delete":
		return commands.DeleteFlag{FlagRef: ref}
	default:
		return commands.CreateFlag{TenantID: "t", Key: key, ID: commands.NewID(), Type: kind, Salt: commands.NewSalt()}
	}
}

func maybe[T any](t *rapid.T, draw func(*rapid.T) T) *T {
	if rapid.Bool().Draw(t, "sent") {
		return new(draw(t))
	}
	return nil
}

func maybeValue(t *rapid.T, kind events.FlagType) json.RawMessage {
	if rapid.Bool().Draw(t, "sent") {
		return drawValue(kind)(t)
	}
	return nil
}

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.StringMatching(`[a-zA-Zäöü "'\\{},<>&😀-]{0,12}`), rapid.Just("x")).Draw(t, "text")
}

func drawTags(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.StringMatching(`[a-c"{},]{1,2}`), 0, 4).Draw(t, "tags")
}

func drawOffServes(t *rapid.T) string {
	return rapid.SampledFrom([]string{"value", "code"}).Draw(t, "offServes")
}

func drawLinks(t *rapid.T) []events.Link {
	return rapid.SliceOfN(rapid.Just(events.Link{Title: "t", URL: "https://example.com/"}), 0, 2).Draw(t, "links")
}

func drawWeight(t *rapid.T) events.Weight {
	return rapid.OneOf(rapid.Just[events.Weight](0), rapid.Map(rapid.Int64Range(0, int64(events.MaxWeight)), func(n int64) events.Weight { return events.Weight(n) })).
		Draw(t, "weight")
}

func drawVariation(t *rapid.T, kind events.FlagType) commands.NewVariation {
	return commands.NewVariation{
		ID:          commands.NewID(),
		Name:        drawText(t),
		Value:       drawValue(kind)(t),
		Description: drawText(t),
		Weight:      drawWeight(t),
	}
}

func drawRules(t *rapid.T, f state.Flag, ref commands.FlagRef, environment events.EnvironmentRef) commands.SetRules {
	set := commands.SetRules{FlagRef: ref, Environment: environment, Rules: []commands.NewRule{}}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		set.Rules = append(set.Rules, drawRule(t, f, environment))
	}
	return set
}

// drawRule draws a new rule, an existing rule, or a rule of another environment.
func drawRule(t *rapid.T, f state.Flag, environment events.EnvironmentRef) commands.NewRule {
	rule := commands.NewRule{
		NewID:      commands.NewID(),
		Salt:       commands.NewSalt(),
		Name:       drawText(t),
		Conditions: []events.Condition{},
		Serve:      drawServe(t, f),
	}
	for range rapid.IntRange(0, 2).Draw(t, "conditions") {
		rule.Conditions = append(rule.Conditions, rapid.SampledFrom(someConditions).Draw(t, "condition").Condition)
	}
	ids := []string{"", "", "", "", ""}
	for _, r := range f.Rules[environment.ID] {
		ids = append(ids, r.ID)
	}
	if id := rapid.SampledFrom(append(ids, "none")).Draw(t, "id"); id != "" {
		rule.ID = &id
	}
	return rule
}

func drawServe(t *rapid.T, f state.Flag) *commands.NewServe {
	variations := rapid.Permutation(f.Variations).Draw(t, "variations")
	switch kind := rapid.IntRange(0, 12).Draw(t, "serve"); {
	case kind == 12:
		return &commands.NewServe{VariationID: new("none")}
	case kind >= 9 || len(variations) == 0:
		return &commands.NewServe{Value: drawValue(f.Type)(t)}
	case kind >= 5:
		return &commands.NewServe{VariationID: &variations[0].ID}
	}
	serve := &commands.NewServe{
		BucketBy: rapid.SampledFrom([]*string{nil, nil, new("targetingKey"), new("plan"), new("none")}).Draw(t, "bucketBy"),
	}
	for _, v := range variations[:rapid.IntRange(1, len(variations)).Draw(t, "shares")] {
		serve.Rollout = append(serve.Rollout, events.Share{VariationID: v.ID, Weight: drawWeight(t)})
	}
	return serve
}

// drawValue draws JSON that usually has a flag's type, in unusual spellings.
func drawValue(kind events.FlagType) func(t *rapid.T) json.RawMessage {
	values := map[events.FlagType][]string{
		events.BooleanFlag: {`true`, `false`, `1`},
		events.StringFlag:  {`""`, `"<a&b>"`, `"\u00e9\/"`, `"é"`, `null`},
		events.NumberFlag:  {`9007199254740993`, `1.50`, `-0`, `1e2`, `"1"`},
		events.JSONFlag:    {`{"b":1, "a":[1.50,{"z":null}]}`, `[]`, `null`, `"text"`},
	}
	return func(t *rapid.T) json.RawMessage {
		if rapid.IntRange(0, 3).Draw(t, "any") == 0 {
			return json.RawMessage(nodetest.DrawValue(t, kind))
		}
		return json.RawMessage(rapid.SampledFrom(values[kind]).Draw(t, "value"))
	}
}
