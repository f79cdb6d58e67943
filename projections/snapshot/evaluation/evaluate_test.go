package evaluation

import (
	"encoding/json"
	"errors"
	"testing"

	"flagledger/events"
)

func TestEvaluate(t *testing.T) {
	to := func(s events.FlagStatus) events.Fact { return events.FlagStatusChanged{From: events.ActiveFlag, To: s} }
	for name, c := range map[string]struct {
		facts []events.Fact
		want  Result
	}{
		"a new flag is off":                 {[]events.Fact{made(events.BooleanFlag, "false")}, Result{Value: []byte("false"), Reason: Off}},
		"an archived one":                   {[]events.Fact{made(events.NumberFlag, "3"), on, to(events.ArchivedFlag)}, Result{Value: []byte("3"), Reason: Archived}},
		"an inactive one":                   {[]events.Fact{made(events.NumberFlag, "3"), on, to(events.InactiveFlag)}, Result{Value: []byte("3"), Reason: Off}},
		"disabled again":                    {[]events.Fact{made(events.NumberFlag, "3"), on, events.FlagDisabled{Environment: production}}, Result{Value: []byte("3"), Reason: Off}},
		"in another environment":            {[]events.Fact{made(events.NumberFlag, "3"), events.FlagEnabled{Environment: events.EnvironmentRef{ID: "e2", Name: "production"}}}, Result{Value: []byte("3"), Reason: Off}},
		"boolean":                           {[]events.Fact{made(events.BooleanFlag, "false"), on}, Result{Enabled: true, Value: []byte("true"), Reason: Fallthrough}},
		"any other type serves its default": {[]events.Fact{made(events.StringFlag, `"x"`), on}, Result{Enabled: true, Value: []byte(`"x"`), Reason: Fallthrough}},
		"variations without weight split nothing": {
			[]events.Fact{made(events.BooleanFlag, "false", choice("a", "false", 0)), on}, Result{Enabled: true, Value: []byte("true"), Reason: Fallthrough},
		},
		"all weight on one": {
			[]events.Fact{made(events.NumberFlag, "0", choice("a", "1", 0), choice("b", "2", 5)), on},
			Result{Enabled: true, Value: []byte("2"), Reason: Fallthrough, Split: true, VariationID: "b", VariationName: "name of b"},
		},
		"a variation updated": {
			[]events.Fact{made(events.NumberFlag, "0", choice("a", "1", 1)), on, events.VariationUpdated{
				ID: "a", Name: &events.Change[string]{To: "n"}, Value: &events.Change[json.RawMessage]{To: []byte("9")},
			}},
			Result{Enabled: true, Value: []byte("9"), Reason: Fallthrough, Split: true, VariationID: "a", VariationName: "n"},
		},
		"a variation added and one removed": {
			[]events.Fact{made(events.NumberFlag, "0", choice("a", "1", 1)), on, events.VariationAdded{Variation: choice("b", "2", 1)}, events.VariationRemoved{Variation: choice("a", "1", 1)}},
			Result{Enabled: true, Value: []byte("2"), Reason: Fallthrough, Split: true, VariationID: "b", VariationName: "name of b"},
		},
		"another default": {
			[]events.Fact{made(events.NumberFlag, "0"), events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: []byte("5")}}}, Result{Value: []byte("5"), Reason: Off},
		},
		"a second life": {
			[]events.Fact{made(events.NumberFlag, "0", choice("a", "1", 1)), on, events.FlagDeleted{}, made(events.NumberFlag, "7")}, Result{Value: []byte("7"), Reason: Off},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := flagOf(t, c.facts...).Evaluate(production.ID, &Context{TargetingKey: "u"})
			c.want.Version = events.Revision(len(c.facts))
			if err != nil || shown(got) != shown(c.want) {
				t.Errorf("it serves %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestASplitNeedsAUnit(t *testing.T) {
	_, err := flagOf(t, made(events.NumberFlag, "0", choice("a", "1", 1)), on).Evaluate(production.ID, &Context{})
	if missing, ok := errors.AsType[*NoUnitError](err); !ok || missing.Attribute != "targetingKey" {
		t.Errorf("got %v, want that targetingKey is missing", err)
	}
}
