package commands

import (
	"encoding/json"
	"strings"
	"testing"

	"flagledger/events"
)

func TestWhatIsServed(t *testing.T) {
	share := func(id string, weight events.Weight) events.Share {
		return events.Share{VariationID: id, Weight: weight}
	}
	for name, c := range map[string]struct {
		sent   *NewServe
		want   *events.Serve
		fields []string
	}{
		"a variation":                  {&NewServe{VariationID: new("v2")}, &events.Serve{VariationID: "v2"}, nil},
		"a variation and null":         {&NewServe{VariationID: new("v2"), Value: raw("null")}, &events.Serve{VariationID: "v2"}, nil},
		"a value":                      {&NewServe{Value: raw(" 1.50")}, &events.Serve{Value: raw("1.50")}, nil},
		"a rollout":                    {&NewServe{Rollout: []events.Share{share("v2", 0), share("v1", 1)}}, &events.Serve{Rollout: []events.Share{share("v2", 0), share("v1", 1)}}, nil},
		"a rollout and null":           {&NewServe{Rollout: []events.Share{share("v1", 1)}, Value: raw("null")}, &events.Serve{Rollout: []events.Share{share("v1", 1)}}, nil},
		"a rollout by an attribute":    {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("company.id")}, &events.Serve{Rollout: []events.Share{share("v1", 1)}, BucketBy: "company.id"}, nil},
		"a rollout by targetingKey":    {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("targetingKey")}, &events.Serve{Rollout: []events.Share{share("v1", 1)}}, nil},
		"nothing":                      {nil, nil, []string{""}},
		"none of the three":            {&NewServe{}, nil, []string{""}},
		"all of the three":             {&NewServe{VariationID: new("v1"), Value: raw("1"), Rollout: []events.Share{share("v1", 1)}}, nil, []string{""}},
		"two, and both are wrong":      {&NewServe{VariationID: new("none"), Value: raw("true")}, nil, []string{"", ".variationId", ".value"}},
		"no variation of the flag":     {&NewServe{VariationID: new("v3")}, nil, []string{".variationId"}},
		"an empty id":                  {&NewServe{VariationID: new("")}, nil, []string{".variationId"}},
		"a value of another type":      {&NewServe{Value: raw(`"1"`)}, nil, []string{".value"}},
		"null":                         {&NewServe{Value: raw(`null`)}, nil, []string{".value"}},
		"an empty rollout":             {&NewServe{Rollout: []events.Share{}}, nil, []string{".rollout"}},
		"weights of 0":                 {&NewServe{Rollout: []events.Share{share("v1", 0), share("v2", 0)}}, nil, []string{".rollout"}},
		"weights out of range":         {&NewServe{Rollout: []events.Share{share("v1", -1), share("v2", events.MaxWeight+1)}}, nil, []string{".rollout[0].weight", ".rollout[1].weight"}},
		"a variation twice":            {&NewServe{Rollout: []events.Share{share("v1", 1), share("v2", 1), share("v1", 1)}}, nil, []string{".rollout[2].variationId"}},
		"unknown variations":           {&NewServe{Rollout: []events.Share{share("v3", 1), share("", 1)}}, nil, []string{".rollout[0].variationId", ".rollout[1].variationId"}},
		"too many":                     {&NewServe{Rollout: repeat(share("v1", 1), 101)}, nil, []string{".rollout"}},
		"bucketBy without a rollout":   {&NewServe{VariationID: new("v1"), BucketBy: new("a")}, nil, []string{".bucketBy"}},
		"bucketBy that is no path":     {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("a..b")}, nil, []string{".bucketBy"}},
		"bucketBy that is empty":       {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("")}, nil, []string{".bucketBy"}},
		"bucketBy, and nothing at all": {&NewServe{BucketBy: new("a")}, nil, []string{"", ".bucketBy"}},
	} {
		t.Run(name, func(t *testing.T) {
			byRule := when(t, []events.Fact{split}, setting(sentRule("", func(r *NewRule) { r.Serve = c.sent })))
			set := when(t, []events.Fact{split}, SetFallthrough{FlagRef: theFlag, Environment: production, Serve: c.sent})
			if c.want == nil {
				var inRule, alone []string
				for _, field := range c.fields {
					inRule, alone = append(inRule, "rules[0].serve"+field), append(alone, "serve"+field)
				}
				byRule.refused(Invalid, inRule...)
				set.refused(Invalid, alone...)
				return
			}
			byRule.then(ruled(events.Rule{ID: "new", Name: "n", Salt: "new salt", Conditions: onPlan(`"pro"`), Serve: *c.want}))
			set.then(events.FallthroughChanged{Environment: production, To: c.want})
		})
	}
	t.Run("null of a flag of JSON", func(t *testing.T) {
		ofJSON := created(func(f *events.FlagCreated) { f.Type, f.DefaultValue = events.JSONFlag, raw("{}") })
		when(t, []events.Fact{ofJSON},
			SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{Value: raw("null")}}).
			then(events.FallthroughChanged{Environment: production, To: &events.Serve{Value: raw("null")}})
	})
}

func TestSetFallthrough(t *testing.T) {
	low, high := &events.Serve{VariationID: "v1"}, &events.Serve{VariationID: "v2"}
	given := []events.Fact{split, events.FallthroughChanged{Environment: production, To: low}}
	to := func(id string) SetFallthrough {
		return SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{VariationID: &id}}
	}
	unset := SetFallthrough{FlagRef: theFlag, Environment: production, Unset: true}
	when(t, given, to("v2")).then(events.FallthroughChanged{Environment: production, From: low, To: high})
	when(t, given, to("v1")).then()
	when(t, given, unset).then(events.FallthroughChanged{Environment: production, From: low})
	when(t, []events.Fact{split}, unset).then()
	when(t, append(given, events.FallthroughChanged{Environment: production, From: low}), unset).then()
	when(t, nil, unset).refused(NotFound)
	elsewhere := to("v1")
	elsewhere.Environment = development
	when(t, given, elsewhere).then(events.FallthroughChanged{Environment: development, To: low})
	large := setting(sentRule("", func(r *NewRule) { r.Serve = &NewServe{Value: raw(strings.Repeat("1", 300))} }))
	if err := when(t, []events.Fact{split}, large).err; err != nil {
		t.Error(err)
	}
	ofText := created(func(f *events.FlagCreated) { f.Type, f.DefaultValue = events.StringFlag, raw(`""`) })
	when(
		t,
		[]events.Fact{ofText},
		SetFallthrough{
			FlagRef:     theFlag,
			Environment: production,
			Serve:       &NewServe{Value: raw(`"` + strings.Repeat("x", maxServed) + `"`)},
		},
	).
		refused(Conflict)
}

func TestAVariationThatIsServedStays(t *testing.T) {
	rollout := storedRule("r2")
	rollout.Name, rollout.Serve = "", events.Serve{
		Rollout: []events.Share{{VariationID: "v2", Weight: 1}, {VariationID: "v1", Weight: 0}},
	}
	inProduction, inDevelopment := ruled(storedRule("r1"), rollout), events.ChangeRules(development, nil, []events.Rule{rollout})
	byFallthrough := events.FallthroughChanged{Environment: development, To: &events.Serve{VariationID: "v1"}}
	both := []events.EnvironmentRef{production, development}
	removed := events.VariationRemoved{Variation: split.Variations[0]}
	for name, c := range map[string]struct {
		given        []events.Fact
		environments []events.EnvironmentRef
		detail       string // empty if the variation is removed
	}{
		"by nothing":             {nil, both, ""},
		"by rules":               {[]events.Fact{inProduction}, both, "the variation is still served by rule 1 (n) in production, rule 2 in production"},
		"by a fallthrough":       {[]events.Fact{byFallthrough}, both, "the variation is still served by the fallthrough in development"},
		"in two environments":    {[]events.Fact{byFallthrough, inProduction, inDevelopment}, both, "the variation is still served by rule 1 (n) in production, rule 2 in production, rule 1 in development, the fallthrough in development"},
		"in a deleted one":       {[]events.Fact{byFallthrough, inDevelopment}, []events.EnvironmentRef{production}, ""},
		"in one added again":     {[]events.Fact{inProduction}, []events.EnvironmentRef{{ID: "e3", Name: "production"}}, ""},
		"by rules that are gone": {[]events.Fact{inProduction, byFallthrough, events.RulesChanged{Environment: production, Order: &events.Change[[]string]{}}, events.FallthroughChanged{Environment: development}}, both, ""},
	} {
		t.Run(name, func(t *testing.T) {
			decided := when(t, append([]events.Fact{split}, c.given...),
				RemoveVariation{FlagRef: theFlag, ID: "v1", Environments: c.environments})
			if c.detail == "" {
				decided.then(removed)
				return
			}
			if decided.refused(Conflict); decided.err.Error() != c.detail {
				t.Errorf("it says %q", decided.err)
			}
		})
	}
	t.Run("and can be updated", func(t *testing.T) {
		when(t, []events.Fact{split, inProduction}, UpdateVariation{FlagRef: theFlag, ID: "v1", Value: raw("9")}).
			then(events.VariationUpdated{ID: "v1", Value: &events.Change[json.RawMessage]{From: raw("1"), To: raw("9")}})
	})
}
