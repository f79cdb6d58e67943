package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/state"
)

// textValue returns a text of n bytes as JSON.
func textValue(n int) json.RawMessage { return raw(`"` + strings.Repeat("x", n-2) + `"`) }

// ofText returns a text flag with values of n bytes.
func ofText(n int) events.FlagCreated {
	return created(func(f *events.FlagCreated) {
		f.Type, f.DefaultValue, f.Variations = events.StringFlag, textValue(n), []events.Variation{
			{ID: "v1", Name: "low", Value: textValue(n)},
		}
	})
}

func TestAValueHasABound(t *testing.T) {
	serving := func(n int) *NewServe { return &NewServe{Value: textValue(n)} }
	rule := func(n int) events.Rule {
		return events.Rule{ID: "r1", Salt: "s", Serve: events.Serve{Value: textValue(n)}}
	}
	large := []events.Fact{
		ofText(maxValueBytes + 100),
		events.RulesChanged{
			Environment: production,
			Added:       []events.Rule{rule(maxValueBytes + 100)},
			Order:       &events.Change[[]string]{To: []string{"r1"}},
		},
		events.FallthroughChanged{Environment: production, To: &events.Serve{Value: textValue(maxValueBytes + 100)}},
	}
	for name, change := range map[string]func(n int) Command[state.Flag]{
		"the default": func(n int) Command[state.Flag] { return UpdateFlag{FlagRef: theFlag, DefaultValue: textValue(n)} },
		"a variation's": func(n int) Command[state.Flag] {
			return UpdateVariation{FlagRef: theFlag, ID: "v1", Value: textValue(n)}
		},
		"a rule's": func(n int) Command[state.Flag] {
			return setting(NewRule{ID: new("r1"), Conditions: []events.Condition{}, Serve: serving(n)})
		},
		"a fallthrough's": func(n int) Command[state.Flag] {
			return SetFallthrough{FlagRef: theFlag, Environment: production, Serve: serving(n)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n, given := range map[int][]events.Fact{
				maxValueBytes:       append([]events.Fact{ofText(2)}, ruled(rule(3))),
				maxValueBytes + 100: large, // an earlier release accepted them
				maxValueBytes + 50:  large,
			} {
				if err := when(t, given, change(n)).err; err != nil {
					t.Errorf("%d bytes: %v", n, err)
				}
				when(t, given, change(n+51)).refused(Conflict)
			}
		})
	}
	t.Run("a new one's", func(t *testing.T) {
		add := AddVariation{
			FlagRef:   theFlag,
			Variation: NewVariation{ID: "v2", Name: "high", Value: textValue(maxValueBytes)},
		}
		if err := when(t, []events.Fact{ofText(2)}, add).err; err != nil {
			t.Error(err)
		}
		add.Variation.Value = textValue(maxValueBytes + 1)
		when(t, large, add).refused(Conflict)
	})
	t.Run("those of a new flag, which are named", func(t *testing.T) {
		c := CreateFlag{
			TenantID:     "t",
			Key:          "k",
			Type:         events.StringFlag,
			DefaultValue: textValue(maxValueBytes),
			Variations:   []NewVariation{{ID: "v1", Name: "v1", Value: textValue(maxValueBytes)}},
		}
		if err := when(t, nil, c).err; err != nil {
			t.Error(err)
		}
		c.Variations[0].Value = textValue(maxValueBytes + 1)
		refused := when(t, nil, c)
		if refused.refused(
			Conflict,
		); refused.err.Error() != "flag_variations[0].value takes 65537 bytes as JSON: a value may take 65536" {
			t.Error(refused.err)
		}
	})
}

func TestAFlagHasABound(t *testing.T) {
	serving := func(n int) []NewRule {
		rules := make([]NewRule, n)
		for i := range rules {
			rules[i] = NewRule{
				NewID:      fmt.Sprint("r", i),
				Conditions: []events.Condition{},
				Serve:      &NewServe{Value: textValue(maxValueBytes)},
			}
		}
		return rules
	}
	given := []events.Fact{ofText(2)}
	for range 7 {
		facts, err := AddVariation{
			FlagRef:   theFlag,
			Variation: NewVariation{ID: fmt.Sprint(len(given)), Name: fmt.Sprint(len(given)), Value: textValue(maxValueBytes)},
		}.
			Decide(stateOf[state.Flag](given))
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, facts...)
	}
	when(t, given, setting(serving(1)...)).refused(Conflict)
	elsewhere := setting(serving(1)...)
	elsewhere.Environment = development
	when(t, given, elsewhere).refused(Conflict)
	when(t, given, SetFallthrough{FlagRef: theFlag, Environment: production, Serve: serving(1)[0].Serve}).refused(Conflict)
	when(t, given, UpdateVariation{FlagRef: theFlag, ID: "v1", Value: textValue(maxValueBytes)}).refused(Conflict)
	if err := when(t, given, UpdateVariation{FlagRef: theFlag, ID: "3", Value: raw(`""`)}).err; err != nil {
		t.Error(err)
	}
	t.Run("what is larger already shrinks, and changes in what takes no bytes", func(t *testing.T) {
		given := append(given, ruled(events.Rule{ID: "r1", Serve: events.Serve{Value: textValue(4 * maxValueBytes)}}))
		for _, c := range []Command[state.Flag]{
			UpdateVariation{FlagRef: theFlag, ID: "3", Value: raw(`""`)}, setting(), SwitchFlag{FlagRef: theFlag, Environment: production, On: true}, RemoveVariation{FlagRef: theFlag, ID: "3"},
			UpdateVariation{FlagRef: theFlag, ID: "3", Weight: new(events.Weight(5000))},
		} {
			if d := when(t, given, c); d.err != nil || len(d.facts) != 1 {
				t.Errorf("%T: %v", c, d.err)
			}
		}
		when(t, given, UpdateFlag{FlagRef: theFlag, Name: new("a longer name than before")}).refused(Conflict)
	})
}

func TestNumbersInValuesFit(t *testing.T) {
	ofJSON := created(func(f *events.FlagCreated) { f.Type, f.DefaultValue = events.JSONFlag, raw("{}") })
	for value, fits := range map[string]bool{
		`1e308`: true, `-1.7976931348623157e308`: true, `1e-999999999`: true, `9007199254740993`: true, `{"1e999":"1e999","a\"1e999":"\\"}`: true, `"1e999"`: true,
		`1e309`: false, `-1e999999999`: false, `[1,{"a":[2,1E+400]}]`: false, `{"a\\":1e999}`: false, strings.Repeat("9", 400): false,
	} {
		refused := func(cmd Command[state.Flag], field string) {
			t.Helper()
			if d := when(t, []events.Fact{ofJSON}, cmd); !fits {
				d.refused(Invalid, field)
			} else if d.err != nil {
				t.Errorf("%s: %v", value, d.err)
			}
		}
		refused(UpdateFlag{FlagRef: theFlag, DefaultValue: raw(value)}, "defaultValue")
		refused(AddVariation{FlagRef: theFlag, Variation: NewVariation{ID: "v1", Name: "v", Value: raw(value)}}, "value")
		refused(SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{Value: raw(value)}}, "serve.value")
		if value[0] == '{' || value[0] == '[' {
			continue
		}
		condition := []events.Condition{{Attribute: "a", Op: events.In, Values: []json.RawMessage{raw(value)}}}
		refused(setting(NewRule{NewID: "r1", Conditions: condition, Serve: &NewServe{Value: raw("1")}}),
			"rules[0].conditions[0].values[0]")
		if value[0] != '"' {
			condition[0].Op = events.Greater
			refused(setting(NewRule{NewID: "r1", Conditions: condition, Serve: &NewServe{Value: raw("1")}}),
				"rules[0].conditions[0].values[0]")
		}
	}
}

// The largest facts of commands, with the longest metadata, leave a quarter of an event's bytes free.
// TestRulesThatFitOnceCanAlwaysBeChanged tests facts of rules.
func TestTheLargestFactsAreFarFromTheirBound(t *testing.T) {
	worst := func(n int, c string) string { return strings.Repeat(c, n) }
	text := func(i int) string { return worst(maxName-3, "\x01") + fmt.Sprintf("%03d", i) }
	create := CreateFlag{
		TenantID:     uuid.NewString(),
		Key:          worst(128, "k"),
		ID:           uuid.NewString(),
		Type:         events.StringFlag,
		Salt:         NewSalt(),
		ProjectID:    uuid.NewString(),
		DefaultValue: textValue(maxValueBytes),
	}
	var given []events.Fact
	for i := range maxVariations {
		create.Variations = append(create.Variations,
			NewVariation{ID: uuid.NewString(), Name: text(i), Value: textValue(100), Description: worst(300, "\u2028")})
	}
	for { // as many as are accepted
		facts, err := create.Decide(state.Flag{})
		if err == nil {
			given = facts
			break
		}
		if KindOf(err) != Conflict {
			t.Fatal(err)
		}
		create.Variations = create.Variations[1:]
	}
	largest := stateOf[state.Flag](given)
	ref := FlagRef{TenantID: create.TenantID, Key: create.Key}
	tags := func(c string) *[]string {
		var list []string
		for i := range maxTags {
			list = append(list, worst(maxTag-2, c)+fmt.Sprintf("%02d", i))
		}
		return &list
	}
	smaller := stateOf[state.Flag]([]events.Fact{ofText(maxValueBytes)})
	from, err := UpdateFlag{
		FlagRef:     ref,
		Name:        new(worst(maxName, "\x01")),
		Description: new(worst(maxDescription, "\x01")),
		Tags:        tags("\x01"),
	}.Decide(smaller)
	if err != nil {
		t.Fatal(err)
	}
	smaller = stateOf[state.Flag](append([]events.Fact{ofText(maxValueBytes)}, from...))
	changes := [][]events.Fact{given}
	for _, c := range []struct {
		of  state.Flag
		cmd Command[state.Flag]
	}{
		{smaller, UpdateFlag{
			FlagRef: ref, Name: new(worst(maxName, "\x02")), Description: new(worst(maxDescription, "\x02")), Tags: tags("\x02"), DefaultValue: raw(`"` + worst(maxValueBytes-2, "y") + `"`),
			Status: new(events.ArchivedFlag),
		}},
		{smaller, UpdateVariation{FlagRef: ref, ID: "v1", Name: new(text(0)), Description: new(worst(maxDescription, "\x02")), Value: raw(`"` + worst(maxValueBytes-2, "y") + `"`)}},
		{largest, RemoveVariation{FlagRef: ref, ID: largest.Variations[0].ID}},
		{stateOf[state.Flag]([]events.Fact{ofText(2), events.FallthroughChanged{Environment: production, To: &events.Serve{Value: textValue(maxValueBytes)}}}), SetFallthrough{
			FlagRef: ref, Environment: production, Serve: &NewServe{Value: raw(`"` + worst(maxValueBytes-2, "y") + `"`)},
		}},
	} {
		facts, err := c.cmd.Decide(c.of)
		if err != nil {
			t.Fatalf("%T: %v", c.cmd, err)
		}
		changes = append(changes, facts)
	}
	for _, facts := range changes {
		if n := storedBytes(t, facts...); n > events.MaxEventBytes*3/4 {
			t.Errorf("%s takes %d bytes", facts[0].StoredName(), n)
		}
	}
	if n := storedBytes(t, given...); n < MaxFlagBytes/2 || n > MaxFlagBytes+8<<10 {
		t.Errorf("the largest flag takes %d bytes in its fact: it counts as %d", n, largest.Bytes())
	}
}

// storedBytes returns the stored size of all facts of a change, with the longest metadata.
func storedBytes(t *testing.T, facts ...events.Fact) (n int) {
	t.Helper()
	for _, fact := range facts {
		stored, err := events.Encode(events.Event{ID: uuid.New(), Fact: fact, Metadata: events.Metadata{
			Time:          time.Now(),
			Actor:         events.Actor{Kind: events.ClientActor, ID: uuid.NewString()},
			RequestID:     uuid.NewString(),
			CorrelationID: strings.Repeat("c", 200),
			Reason:        strings.Repeat("\u2028", 500), // three bytes that JSON writes as six
		}})
		if err != nil {
			t.Fatal(err)
		}
		n += len(stored.Data) + len(stored.Metadata)
	}
	return n
}
