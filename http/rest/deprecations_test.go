package rest

import (
	"os"
	"strings"
	"testing"
)

// DEPRECATIONS.md lists the legacy paths of legacyRoutes, and those with a different shape.
func TestDeprecationsListLegacyRoutes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../DEPRECATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	table, differences, _ := strings.Cut(string(text), "These differ")
	for _, l := range legacyRoutes {
		row := "| " + l.methods + " | `" + l.path + "` | `" + l.successor + "` |"
		if !strings.Contains(table, row+"\n") {
			t.Errorf("DEPRECATIONS.md lacks the row %s", row)
		}
		if listed := strings.Contains(differences, "`"+l.path+"`"); listed != (l.difference != "") {
			t.Errorf("%s differs from its successor: %t; DEPRECATIONS.md says %t", l.path, l.difference != "", listed)
		}
	}
	if rows := strings.Count(table, "\n| ") - 1; rows != len(legacyRoutes) {
		t.Errorf("DEPRECATIONS.md lists %d paths; there are %d", rows, len(legacyRoutes))
	}
}
