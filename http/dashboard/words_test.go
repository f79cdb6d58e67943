package dashboard_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
)

// The dashboard shows the stored name of anything that it has no words for. New facts, kinds of things and fields of
// flags need words.
func TestTheDashboardHasWordsForAllFacts(t *testing.T) {
	t.Parallel()
	check := func(file, block string, names []string) {
		t.Helper()
		text, err := os.ReadFile("src/words/" + file)
		if err != nil {
			t.Fatal(err)
		}
		_, words, found := strings.Cut(string(text), block+" {\n")
		words, _, ended := strings.Cut(words, "}")
		if !found || !ended {
			t.Fatalf("%s has no %s", file, block)
		}
		for _, name := range names {
			if !regexp.MustCompile(`(?m)^ +'?` + regexp.QuoteMeta(name) + `'?: '.`).MatchString(words) {
				t.Errorf("%q in %s has no words for %s", block, file, name)
			}
		}
	}
	check("audit.ts", "\n  resources:", state.ResourceTypes())
	golden, err := filepath.Glob("../../events/testdata/*.v1.json")
	if err != nil || len(golden) == 0 {
		t.Fatal("there are no golden files of facts", err)
	}
	var facts, fields []string
	for _, file := range golden {
		facts = append(facts, strings.TrimSuffix(filepath.Base(file), ".v1.json"))
	}
	check("audit.ts", "\n  actions:", facts)
	for _, fact := range []reflect.Type{reflect.TypeFor[events.FlagUpdated](), reflect.TypeFor[events.VariationUpdated]()} {
		for i := range fact.NumField() {
			name, _, _ := strings.Cut(fact.Field(i).Tag.Get("json"), ",")
			if name != "id" {
				fields = append(fields, name)
			}
		}
	}
	check("changes.ts", "const fields: Record<string, string> =", fields)
}
