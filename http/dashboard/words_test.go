package dashboard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The dashboard shows the stored name of anything that it has no words for. New facts and new kinds in the audit trail
// need words.
func TestTheDashboardHasWordsForAllFacts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("src/words/audit.ts")
	if err != nil {
		t.Fatal(err)
	}
	interfaceFile, err := os.ReadFile("../audit.go")
	if err != nil {
		t.Fatal(err)
	}
	types := regexp.MustCompile(`query:"resourceType" enum:"([^"]+)"`).FindSubmatch(interfaceFile)
	if types == nil {
		t.Fatal("http/audit.go lists no types of resources")
	}
	check := func(block string, names []string) {
		t.Helper()
		_, words, found := strings.Cut(string(text), "\n  "+block+": {\n")
		words, _, ended := strings.Cut(words, "\n  }")
		if !found || !ended {
			t.Fatalf("there are no %s", block)
		}
		for _, name := range names {
			if !regexp.MustCompile(`(?m)^ +'?` + regexp.QuoteMeta(name) + `'?: '.`).MatchString(words) {
				t.Errorf("%s has no words for %s", block, name)
			}
		}
	}
	check("resources", strings.Split(string(types[1]), ","))
	golden, err := filepath.Glob("../../events/testdata/*.v1.json")
	if err != nil || len(golden) == 0 {
		t.Fatal("there are no golden files of facts", err)
	}
	var names []string
	for _, file := range golden {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".v1.json"))
	}
	check("actions", names)
}
