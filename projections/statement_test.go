package projections

import (
	"fmt"
	"slices"
	"testing"
)

// Statements of a stream keep their order, and those that several streams have run together.
func TestStatementsOfManyStreamsRunTogether(t *testing.T) {
	t.Parallel()
	add, remove := NewStatement("name text", ""), NewStatement("name text", "")
	names := map[*Statement]string{add: "add", remove: "remove"}
	var b Batch
	for _, step := range []struct {
		stream    string
		statement *Statement
	}{{"a", add}, {"a", remove}, {"b", remove}, {"b", add}, {"c", add}, {"c", add}, {"a", add}} {
		b.stream = step.stream
		b.Queue(step.statement, step.stream)
	}
	var got []string
	for _, g := range grouped(b.changes) {
		got = append(got, fmt.Sprint(names[g.statement], g.rows))
	}
	if want := []string{"add[[a] [c]]", "remove[[a] [b]]", "add[[b] [c] [a]]"}; !slices.Equal(got, want) {
		t.Errorf("statements run as %v, want %v", got, want)
	}
}
