package projections

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Statement is SQL that applies events of many streams in one execution. Each parameter is an array with an element
// for each event.
type Statement struct {
	sql   string
	names []string // of the arguments
	lists []bool   // for each argument: whether it is an array of an event itself
}

// NewStatement returns a statement. arguments are the names and types of one event's arguments, as in "id text, names
// text[]". sql follows "with given as (...)", a table of these columns with a row for each event; it may begin with a
// comma and further queries.
func NewStatement(arguments, sql string) *Statement {
	s := &Statement{}
	var selected, arrays []string
	for i, argument := range strings.Split(arguments, ", ") {
		name, of, _ := strings.Cut(argument, " ")
		element, list := strings.CutSuffix(of, "[]")
		s.lists = append(s.lists, list)
		s.names = append(s.names, name)
		if list { // arrays of arrays must all be of one length: each is sent as a text
			element, name = "text", name+"::"+of+" as "+name
		}
		selected = append(selected, name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, element))
	}
	s.sql = fmt.Sprintf("with given as (select %s from unnest(%s) as given (%s))%s", strings.Join(selected, ", "),
		strings.Join(arrays, ", "), strings.Join(s.names, ", "), "\n"+sql)
	return s
}

// values returns the arguments of one event in the order of the statement. It panics if they are not the statement's:
// applyEvent makes that an error.
func (s *Statement) values(args pgx.NamedArgs) []any {
	values := make([]any, len(s.names))
	for i, name := range s.names {
		value, given := args[name]
		if !given {
			panic("a statement lacks the argument " + name)
		}
		values[i] = value
	}
	if len(args) > len(values) {
		panic(fmt.Sprintf("a statement has %v for the arguments %v", slices.Sorted(maps.Keys(args)), s.names))
	}
	return values
}

// group is one execution of a statement: its rows are of events of different keys, so that none depends on another.
type group struct {
	statement *Statement
	rows      [][]any
}

// grouped returns the fewest groups that preserve the order of each key: a change joins the first group of its
// statement after the last change of its key.
func grouped(list []*change) (groups []*group) {
	next := map[string]int{} // by key, the index of the first group for its next change
	for _, c := range list {
		i := next[c.key]
		for i < len(groups) && groups[i].statement != c.statement {
			i++
		}
		if i == len(groups) {
			groups = append(groups, &group{statement: c.statement})
		}
		groups[i].rows = append(groups[i].rows, c.args)
		next[c.key] = i + 1
	}
	return groups
}

// lastOfEach returns the last change of each key.
func lastOfEach(list []*change) (last []*change) {
	later := map[string]int{}
	for i, c := range list {
		later[c.key] = i
	}
	for i, c := range list {
		if later[c.key] == i {
			last = append(last, c)
		}
	}
	return last
}

func (g *group) queue(batch *pgx.Batch) error {
	types := arrayTypes.Get().(*pgtype.Map)
	defer arrayTypes.Put(types)
	columns := make([]any, len(g.statement.lists))
	for i, list := range g.statement.lists {
		column := make([]any, len(g.rows))
		for n, row := range g.rows {
			column[n] = row[i]
			if !list {
				continue
			}
			text, err := types.Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, row[i], nil)
			if err != nil {
				return err
			}
			if column[n] = nil; text != nil {
				column[n] = string(text)
			}
		}
		columns[i] = column
	}
	batch.Queue(g.statement.sql, columns...)
	return nil
}

// arrayTypes pools the type maps that encode arrays, because a map is not safe for concurrent use.
var arrayTypes = sync.Pool{New: func() any { return pgtype.NewMap() }}
