package flagd_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"flagledger/commands/tooltest"
	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/snapshot/flagd"
	"flagledger/projections/snapshot/flagd/flagdtest"
)

type nodeResult struct {
	Value json.RawMessage
	Error string
}

// The official provider for Node serves in process what evaluation serves, or an error; so does one from before the
// bucketing of April 2026, which puts units into other shares. Both hash only ASCII as we do.
func TestNodeProviderServesSameValueOrError(t *testing.T) {
	t.Parallel()
	node := tooltest.Find(t, "node")
	folder, err := tooltest.Install("flagd", os.DirFS("testdata/node"))
	tooltest.Check(t, "flagd", err)
	r := rand.New(rand.NewPCG(uint64(flagdtest.Seed()), 4))
	list := flagdtest.Flags(r, flagdtest.Many(100))
	contexts := flagdtest.Contexts(r, flagdtest.Many(100))
	types := map[string]events.FlagType{}
	for _, f := range list {
		types[f.Key] = f.Type
	}
	path := filepath.Join(t.TempDir(), "document.json")
	if err := os.WriteFile(path, document(t, flagd.Node, list...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, provider := range []string{"@openfeature/flagd-provider", "old-flagd-provider"} {
		old := provider == "old-flagd-provider"
		task, err := json.Marshal(map[string]any{
			"document": path, "flags": types, "contexts": contexts, "provider": provider,
		})
		if err != nil {
			t.Fatal(err)
		}
		taskPath := filepath.Join(t.TempDir(), "task.json")
		if err := os.WriteFile(taskPath, task, 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), node, "exact.mjs", taskPath)
		command.Dir, command.Stderr = folder, os.Stderr
		output, err := command.Output()
		if err != nil {
			t.Fatal(provider, err)
		}
		var results []map[string]nodeResult
		if err := json.Unmarshal(output, &results); err != nil {
			t.Fatal(provider, err)
		}
		same, failed, nonASCII := 0, 0, 0
		for i, sent := range contexts {
			c, _ := contextOf(t, sent)
			for _, f := range list {
				got := results[i][f.Key]
				if !flagd.Supports(f, flagdtest.EnvironmentID).Supported {
					if got.Error != "FLAG_NOT_FOUND" {
						t.Fatalf("%s: %s is not in the document, and served as %s %s", provider, f.Key, got.Value, got.Error)
					}
					continue
				}
				compiled, err := evaluation.CompileIn(*f, flagdtest.EnvironmentID)
				if err != nil {
					t.Fatal(err)
				}
				want, err := compiled.Evaluate(flagdtest.EnvironmentID, &c)
				_, noUnit := errors.AsType[*evaluation.NoUnitError](err)
				switch {
				case got.Error != "":
					failed++
				case noUnit:
					t.Errorf("%s: %s serves %s without a unit", provider, describe(f, sent), got.Value)
				case sameJSON(got.Value, want.Value):
					same++
				case want.Split && !old && !isASCII(sent):
					nonASCII++
				default:
					t.Errorf("%s: %s serves %s, want %s", provider, describe(f, sent), got.Value, want.Value)
				}
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("%s: %d values are the same, %d are errors, %d are of units outside ASCII", provider, same, failed, nonASCII)
		if same == 0 {
			t.Error("no value is the same")
		}
	}
}

// isASCII reports whether the units that drawn flags split by are ASCII, in a context.
func isASCII(sent map[string]json.RawMessage) bool {
	for _, name := range []string{events.TargetingKey, "unit", "größe"} {
		for _, c := range string(sent[name]) {
			if c > 127 {
				return false
			}
		}
	}
	return true
}
