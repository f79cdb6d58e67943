package flagd_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/twmb/murmur3"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/flagd"
	"flagledger/projections/snapshot/flagd/flagdtest"
)

// ruled returns a string flag with a rule of one condition, as JSON.
func ruled(t *testing.T, condition string) *state.Flag {
	t.Helper()
	f := &state.Flag{Exists: true, Status: events.ActiveFlag, Version: 7}
	f.Key, f.Type, f.DefaultValue, f.Salt = "k", events.StringFlag, json.RawMessage(`"rest"`), "salt"
	f.Variations = []events.Variation{{ID: "v1", Name: "on", Value: json.RawMessage(`"yes"`)}}
	f.Enabled = f.Enabled.With(flagdtest.EnvironmentID)
	if condition != "" {
		var c events.Condition
		if err := json.Unmarshal([]byte(condition), &c); err != nil {
			t.Fatal(err)
		}
		rule := events.Rule{ID: "r1", Salt: "salt of r1", Conditions: []events.Condition{c}, Serve: events.Serve{VariationID: "v1"}}
		f.SetRules(flagdtest.EnvironmentID, []events.Rule{rule})
	}
	return f
}

const (
	stringTest = `{"and":[{"===":[{"var":""},{"var":""}]},{"!==":[{"var":""},true]},{"!==":[{"var":""},false]},` +
		`{"===":[{"var":""},{"cat":[{"var":""}]}]}]}`
	numberTest = `{"and":[{"===":[{"var":""},{"var":""}]},{"!==":[{"var":""},null]},{"!==":[{"var":""},true]},` +
		`{"!==":[{"var":""},false]},{"!==":[{"var":""},{"cat":[{"var":""}]}]}]}`
)

func TestConditionsOfEachOperator(t *testing.T) {
	t.Parallel()
	some := func(test string) string { return `{"some":[{"merge":[{"var":"a"}]},` + test + `]}` }
	for condition, want := range map[string]string{
		`{"attribute":"a","op":"exists"}`:                           `{"!==":[{"var":"a"},null]}`,
		`{"attribute":"a","op":"exists","negate":true}`:             `{"!":[{"!==":[{"var":"a"},null]}]}`,
		`{"attribute":"a","op":"in","values":["x"]}`:                some(`{"===":[{"var":""},"x"]}`),
		`{"attribute":"a","op":"in","values":["x",1,true]}`:         some(`{"or":[{"===":[{"var":""},1]},{"===":[{"var":""},true]},{"===":[{"var":""},"x"]}]}`),
		`{"attribute":"a","op":"in","values":["w","x","y","z"]}`:    some(`{"and":[` + stringTest + `,{"in":[{"var":""},["w","x","y","z"]]}]}`),
		`{"attribute":"a","op":"contains","values":["x"]}`:          some(`{"and":[` + stringTest + `,{"in":["x",{"var":""}]}]}`),
		`{"attribute":"a","op":"starts_with","values":["ün"]}`:      some(`{"and":[` + stringTest + `,{"===":[{"substr":[{"var":""},0,2]},"ün"]}]}`),
		`{"attribute":"a","op":"ends_with","values":["x"]}`:         some(`{"and":[` + stringTest + `,{"===":[{"substr":[{"var":""},-1]},"x"]}]}`),
		`{"attribute":"a","op":"gt","values":[5]}`:                  some(`{"and":[` + numberTest + `,{">":[{"var":""},5]}]}`),
		`{"attribute":"a","op":"lte","values":[1e0]}`:               some(`{"and":[` + numberTest + `,{"<=":[{"var":""},1]}]}`),
		`{"attribute":"a","op":"matches","values":["^(x|y)$"]}`:     some(`{"and":[` + stringTest + `,{"or":[{"===":[{"var":""},"x"]},{"===":[{"var":""},"y"]}]}]}`),
		`{"attribute":"targetingKey","op":"in","values":["u","v"]}`: `{"and":[{"!==":[{"var":"targetingKey"},null]},{"!==":[{"var":"targetingKey"},""]},{"or":[{"===":[{"var":"targetingKey"},"u"]},{"===":[{"var":"targetingKey"},"v"]}]}]}`,
	} {
		text, err := flagd.Translate(ruled(t, condition), flagdtest.EnvironmentID, flagd.Go)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		var got struct {
			Targeting struct{ If []json.RawMessage }
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Targeting.If) != 3 || string(got.Targeting.If[0]) != want {
			t.Errorf("%s is translated to\n%s, want\n%s", condition, text, want)
		}
	}
}

func TestReasonsNameRuleAndCause(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]string{
		`{"attribute":"a","op":"matches","values":["^x+$"]}`:                  "rule 1: matches: it is a regular expression that flagd cannot express",
		`{"attribute":"a","op":"matches","values":["(?i)x"]}`:                 "rule 1: matches: it is a regular expression that flagd cannot express",
		`{"attribute":"a","op":"before","values":["2026-03-14T15:09:26Z"]}`:   "rule 1: before: flagd cannot compare times",
		`{"attribute":"a","op":"in","values":[9007199254740993]}`:             "rule 1: in: a number does not fit into 64 bits of floating point",
		`{"attribute":"a","op":"gt","values":[0.10000000000000000001]}`:       "rule 1: gt: a number does not fit into 64 bits of floating point",
		`{"attribute":"a.b","op":"exists"}`:                                   `rule 1: "a.b" may be a name or a path, which flagd cannot tell apart`,
		`{"attribute":"constructor","op":"exists"}`:                           `rule 1: flagd cannot read an attribute named "constructor"`,
		`{"attribute":"a","op":"starts_with","values":["😀"]}`:                 "rule 1: starts_with: engines count characters beyond U+FFFF differently",
		`{"attribute":"a","op":"like","values":["x"]}`:                        "rule 1: like: there is no such operator in flagd",
		`{"op":"in_segment","values":["beta"],"negate":true}`:                 "rule 1: in_segment: flagd has no segments",
		`{"attribute":"$environment","op":"in","values":["x"]}`:               "rule 1: $environment: flagd has no such attribute",
		`{"attribute":"$now","op":"after","values":["2026-03-14T15:09:26Z"]}`: "rule 1: $now: flagd has no such attribute",
		`{"attribute":"$other","op":"exists"}`:                                "rule 1: $other: flagd has no such attribute",
	} {
		f := ruled(t, condition)
		if got := flagd.Supports(f, flagdtest.EnvironmentID); got.Supported || got.Reason != want {
			t.Errorf("the reason of %s is %+v, want %q", condition, got, want)
		}
		if got := flagd.Supports(f, "another"); !got.Supported {
			t.Errorf("where it is off, %s is not supported: %s", condition, got.Reason)
		}
	}
	archived := ruled(t, "")
	archived.Status = events.ArchivedFlag
	list := ruled(t, "")
	list.Type, list.DefaultValue = events.JSONFlag, json.RawMessage("[1]")
	for f, want := range map[*state.Flag]string{
		archived: "the flag is archived",
		list:     "without a matching rule: it serves JSON that is no object",
	} {
		if got := flagd.Supports(f, flagdtest.EnvironmentID); got.Supported || got.Reason != want {
			t.Errorf("the reason is %+v, want %q", got, want)
		}
	}
}

func TestFlagsWithoutRules(t *testing.T) {
	t.Parallel()
	plain := ruled(t, "")
	off := plain.Clone()
	off.Status = events.InactiveFlag
	boolean := plain.Clone()
	boolean.Type, boolean.DefaultValue, boolean.Variations = events.BooleanFlag, json.RawMessage("false"), nil
	odd := plain.Clone()
	odd.Variations[0].Name = `"<&`
	odd.SetFallthrough(flagdtest.EnvironmentID, &events.Serve{VariationID: "v1"})
	for f, want := range map[*state.Flag]string{
		plain:    `{"state":"ENABLED","variants":{"default":"rest"},"defaultVariant":"default","metadata":{"flagVersion":7}}`,
		&off:     `{"state":"ENABLED","variants":{"off":"rest"},"defaultVariant":"off","metadata":{"flagVersion":7,"flagledgerReason":"OFF"}}`,
		&boolean: `{"state":"ENABLED","variants":{"on":true},"defaultVariant":"on","metadata":{"flagVersion":7}}`,
		&odd:     `{"state":"ENABLED","variants":{"v1":"yes"},"defaultVariant":"v1","metadata":{"flagVersion":7}}`,
	} {
		got, err := flagd.Translate(f, flagdtest.EnvironmentID, flagd.Strict)
		if err != nil || string(got) != want {
			t.Errorf("the definition is\n%s, %v, want\n%s", got, err, want)
		}
	}
}

func TestSplitHasProbeAndSmallWeights(t *testing.T) {
	t.Parallel()
	f := ruled(t, "")
	f.Variations = append(f.Variations, events.Variation{ID: "v2", Name: "off", Value: json.RawMessage(`"no"`)})
	f.Variations[0].Weight, f.Variations[1].Weight = 25_000, 75_000
	got, err := flagd.Translate(f, flagdtest.EnvironmentID, flagd.Strict)
	want := `"targeting":{"if":[{"or":[{"===":[{"var":"targetingKey"},null]},{"===":[{"var":"targetingKey"},""]}]},` +
		`"!TARGETING_KEY_MISSING",{"!==":[{"fractional":[{"cat":["flagledger-probe-87"]},["a",1],["b",1]]},"a"]},` +
		`"!ANOTHER_BUCKETING",{"fractional":[{"substr":[{"cat":["salt:",{"var":"targetingKey"},"|"]},0,-1]},["on",1],["off",3]]}]}`
	if err != nil || !strings.Contains(string(got), want) || !strings.Contains(string(got), `"defaultVariant":"default"`) {
		t.Errorf("the split is\n%s, %v, want\n%s", got, err, want)
	}
}

func TestDocumentOfSet(t *testing.T) {
	t.Parallel()
	web, old, dated := ruled(t, ""), ruled(t, ""), ruled(t, `{"attribute":"a","op":"before","values":["2026-03-14T15:09:26Z"]}`)
	web.Key, web.Tags, web.ProjectID = "web", []string{"checkout"}, "p"
	old.Key, old.Status = "old", events.ArchivedFlag
	dated.Key = "dated"
	got := string(document(t, flagd.Strict, dated, old, web))
	want := `{"$schema":"https://flagd.dev/schema/v0/flags.json","flags":{"web":{"state":"ENABLED","variants":{"default":"rest"},` +
		`"defaultVariant":"default","metadata":{"flagVersion":7}}},"metadata":{"flagSetId":"t/production","remoteOnly":1}}`
	if got != want {
		t.Errorf("the document is\n%s, want\n%s", got, want)
	}
	for set, has := range map[flagd.Set]bool{{ProjectID: "p"}: true, {ProjectID: "q"}: false, {Tag: "checkout", ProjectID: "p"}: true, {Tag: "t"}: false} {
		if set.Has(web) != has {
			t.Errorf("%+v has the flag: %t", set, !has)
		}
	}
}

// Each bucketing but today's puts the probe into the second half of a split of two.
func TestProbeTellsBucketings(t *testing.T) {
	t.Parallel()
	const probe = "flagledger-probe-87"
	if murmur3.StringSum32(probe) >= 1<<31 {
		t.Error("today's bucketing does not pass the probe")
	}
	if percent := math.Abs(float64(int32(murmur3.StringSum32(probe)))) / math.MaxInt32 * 100; percent < 60 {
		t.Errorf("the bucketing by percent puts the probe to %v", percent)
	}
	for _, header := range []string{"\x60", "\x81\x60"} { // CBOR's of a text, and of an array of one
		header = header[:len(header)-1] + string(rune('\x60'+len(probe)))
		if murmur3.StringSum32(header+probe) < 1<<31 {
			t.Error("the bucketing by CBOR passes the probe")
		}
	}
}
