package projections

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Statements of a stream keep their order, and so do statements that span streams.
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
		b.Queue(step.statement, pgx.NamedArgs{"name": step.stream})
	}
	var got []string
	for _, g := range grouped(b.changes) {
		got = append(got, fmt.Sprint(names[g.statement], g.rows))
	}
	if want := []string{"add[[a] [c]]", "remove[[a] [b]]", "add[[b] [c] [a]]"}; !slices.Equal(got, want) {
		t.Errorf("statements run as %v, want %v", got, want)
	}
}

// Read models apply pages concurrently; the race detector shows what they share.
func TestStatementsAreQueuedByMany(t *testing.T) {
	t.Parallel()
	type list []string // no encoding of it is known beforehand
	s := NewStatement("id text, names text[]", "insert into names select id, names from given")
	var queueing sync.WaitGroup
	for range 8 {
		queueing.Go(func() {
			g := &group{statement: s, rows: [][]any{{"a", list{"x", "y"}}, {"b", []string{}}}}
			if err := g.queue(&pgx.Batch{}); err != nil {
				t.Error(err)
			}
		})
	}
	queueing.Wait()
}
