package flagd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	schema "github.com/open-feature/flagd-schemas/json"
	"github.com/open-feature/flagd/core/pkg/evaluator"
	"github.com/open-feature/flagd/core/pkg/logger"
	"github.com/open-feature/flagd/core/pkg/store"
	"github.com/open-feature/flagd/core/pkg/sync"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/zap"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/snapshot/flagd"
	"flagledger/projections/snapshot/flagd/flagdtest"
)

// Each definition is as flagd's schema has it: the engines warn about others.
func TestDefinitionsFollowSchema(t *testing.T) {
	t.Parallel()
	compiler := jsonschema.NewCompiler()
	for name, text := range map[string]string{"flagd": schema.FlagdSchema, "flags": schema.FlagSchema, "targeting": schema.TargetingSchema} {
		parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = compiler.AddResource("https://flagd.dev/schema/v0/"+name+".json", parsed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	compiled := compiler.MustCompile("https://flagd.dev/schema/v0/flagd.json")
	for _, f := range flagdtest.Flags(rand.New(rand.NewPCG(uint64(flagdtest.Seed()), 3)), 80) {
		for _, d := range flagd.Dialects() {
			text := document(t, d, f)
			parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err == nil {
				err = compiled.Validate(parsed)
			}
			if err != nil {
				t.Fatalf("%s\n%.3000v", text, err)
			}
		}
	}
}

// engine returns flagd's own evaluator for Go with a document.
func engine(t *testing.T, document []byte) *evaluator.JSON {
	t.Helper()
	log := logger.NewLogger(zap.NewNop(), false)
	flags, err := store.NewStore(log, []string{"test"})
	if err != nil {
		t.Fatal(err)
	}
	e := evaluator.NewJSON(log, flags)
	if err := e.SetState(sync.DataSync{FlagData: string(document), Source: "test"}); err != nil {
		t.Fatal(err)
	}
	return e
}

func document(t *testing.T, d flagd.Dialect, list ...*state.Flag) []byte {
	t.Helper()
	set := flagd.Set{TenantID: "t", Environment: events.EnvironmentRef{ID: flagdtest.EnvironmentID, Name: "production"}}
	text, _, err := set.Document(func(yield func(string, *state.Flag) bool) {
		for _, f := range list {
			if !yield(f.Key, f) {
				return
			}
		}
	}, d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// attribute reads JSON as the service does.
func attribute(v any) any {
	switch v := v.(type) {
	case json.Number:
		return evaluation.ParseNumber([]byte(v))
	case []any:
		for i := range v {
			v[i] = attribute(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = attribute(v[name])
		}
	}
	return v
}

func contextOf(t *testing.T, sent map[string]json.RawMessage) (c evaluation.Context, plain map[string]any) {
	t.Helper()
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber()
	if err := read.Decode(&c.Attributes); err != nil {
		t.Fatal(err)
	}
	attribute(c.Attributes)
	c.TargetingKey, _ = plain[events.TargetingKey].(string)
	return c, plain
}

// What flagd's engine serves in process is what evaluation serves, or an error.
func TestEngineServesSameValueOrError(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(flagdtest.Seed()), 1))
	list, contexts := flagdtest.Flags(r, flagdtest.Many(80)), flagdtest.Contexts(r, flagdtest.Many(80))
	for _, d := range flagd.Dialects() {
		e := engine(t, document(t, d, list...))
		same, failed, left := 0, 0, 0
		for _, f := range list {
			compiled, err := evaluation.CompileIn(*f, flagdtest.EnvironmentID)
			if err != nil {
				t.Fatal(err)
			}
			support := flagd.Supports(f, flagdtest.EnvironmentID)
			if !support.Supported {
				left++
			}
			for _, sent := range contexts {
				c, plain := contextOf(t, sent)
				got := e.ResolveAsAnyValue(context.Background(), "", f.Key, plain)
				if !support.Supported {
					if got.Error == nil || got.Error.Error() != "FLAG_NOT_FOUND" {
						t.Fatalf("%s is served without support: %+v", f.Key, got)
					}
					continue
				}
				want, err := compiled.Evaluate(flagdtest.EnvironmentID, &c)
				if _, noUnit := errors.AsType[*evaluation.NoUnitError](err); noUnit {
					if got.Error == nil {
						t.Errorf("dialect %d: %s serves %v without a unit", d, describe(f, sent), got.Value)
					}
					continue
				}
				if got.Error != nil {
					failed++
					continue
				}
				value, err := json.Marshal(got.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !sameJSON(value, want.Value) {
					t.Errorf("dialect %d: %s serves %s, want %s", d, describe(f, sent), value, want.Value)
				}
				same++
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("dialect %d: %d flags of %d left out, %d values are the same, %d are errors", d, left, len(list), same, failed)
		if same == 0 || failed*4 > same {
			t.Errorf("dialect %d: %d of %d evaluations fail", d, failed, same+failed)
		}
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

func describe(f *state.Flag, sent map[string]json.RawMessage) string {
	flag, _ := json.Marshal(f)
	c, _ := json.Marshal(sent)
	definition, _ := flagd.Translate(f, flagdtest.EnvironmentID, flagd.Go)
	return fmt.Sprintf("%s\n%s\n%s\n", flag, definition, c)
}
