package projections

import (
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Statement is SQL that takes in events of many streams in one execution: each of its parameters is an array, with an
// element for each event.
type Statement struct {
	sql   string
	lists []bool // for each argument: whether it is an array of an event itself
}

// NewStatement makes a statement of the names and types of the arguments of one event, as "id text, names text[]", and
// of SQL that finds them in given: a table with these columns and a row for each event. The SQL is what follows "with
// given as (...)"; it begins with a comma where it goes on with further such queries.
func NewStatement(arguments, sql string) *Statement {
	s := &Statement{}
	var names, selected, arrays []string
	for i, argument := range strings.Split(arguments, ", ") {
		name, of, _ := strings.Cut(argument, " ")
		element, list := strings.CutSuffix(of, "[]")
		s.lists = append(s.lists, list)
		names = append(names, name)
		if list { // arrays of arrays must all be of one length: each is sent as a text
			element, name = "text", name+"::"+of+" as "+name
		}
		selected = append(selected, name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, element))
	}
	s.sql = fmt.Sprintf("with given as (select %s from unnest(%s) as given (%s))%s", strings.Join(selected, ", "),
		strings.Join(arrays, ", "), strings.Join(names, ", "), "\n"+sql)
	return s
}

// group is one execution of a statement: its rows are of events of different keys, so that none depends on another.
type group struct {
	statement *Statement
	rows      [][]any
}

// grouped makes as few groups as keep the changes of a key in their order: each change goes into the first group of its
// statement that comes after the group of the last change of its key.
func grouped(list []*change) (groups []*group) {
	next := map[string]int{} // by key, the index of the first group that a further change may be in
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

// lastOfEach is the last change of each key.
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

// arrayTypes has maps by which arrays are written: one may be used by one goroutine at a time.
var arrayTypes = sync.Pool{New: func() any { return pgtype.NewMap() }}
