package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/events"
)

// Batch collects the statements that apply the events of a page in one transaction: first, changes, last and rows, in
// this order. The zero value is empty.
type Batch struct {
	stream  string // of the current event: the key of what Queue adds
	first   []call
	changes []*change
	last    []*change
	rows    []*row
}

// call is SQL that runs once, by itself.
type call struct {
	sql  string
	args []any
}

// change holds a statement with one event's arguments. Changes with the same key run in order, changes with different
// keys together.
type change struct {
	key       string
	statement *Statement
	args      []any
}

// Table is an append-only table. A row has a value for each of Columns.
type Table struct {
	Name    string
	Columns []string
}

type row struct {
	table  *Table
	values []any
}

// exec adds SQL that runs before all statements.
func (b *Batch) exec(sql string, args ...any) { b.first = append(b.first, call{sql, args}) }

// Queue adds a statement for the current event. Statements of a stream take effect in order; a statement that events
// of several streams have queued is executed once for all of them.
func (b *Batch) Queue(s *Statement, args pgx.NamedArgs) {
	b.changes = append(b.changes, &change{b.stream, s, s.values(args)})
}

// QueueLast adds a statement that takes effect after the queued ones. Of several with the same key, even of different
// streams, only the last one does.
func (b *Batch) QueueLast(key string, s *Statement, args pgx.NamedArgs) {
	b.last = append(b.last, &change{key, s, s.values(args)})
}

// Insert adds a row to a table after all statements have run.
func (b *Batch) Insert(t *Table, values ...any) { b.rows = append(b.rows, &row{t, values}) }

// mark records how much a batch holds.
type mark struct{ changes, last, rows int }

func (b *Batch) mark() mark { return mark{len(b.changes), len(b.last), len(b.rows)} }

// truncate removes what was added after a mark.
func (b *Batch) truncate(m mark) {
	b.changes, b.last, b.rows = b.changes[:m.changes], b.last[:m.last], b.rows[:m.rows]
}

// minCopied is the number of rows from which a table is filled by COPY. COPY takes two more round trips than inserts,
// and a fraction of their time for each row.
const minCopied = 32

// Run runs everything that was added.
func (b *Batch) Run(ctx context.Context, tx pgx.Tx) error { return b.run(ctx, tx, nil) }

// run works like Run, but calls first, unless nil, with the result of the first statement. An error from first ends
// the transaction.
func (b *Batch) run(ctx context.Context, tx pgx.Tx, first func(pgconn.CommandTag) error) error {
	batch := &pgx.Batch{}
	for _, c := range b.first {
		batch.Queue(c.sql, c.args...)
	}
	for _, together := range [][]*group{grouped(b.changes), grouped(lastOfEach(b.last))} {
		for _, g := range together {
			if err := g.queue(batch); err != nil {
				return err
			}
		}
	}
	byTable := map[*Table][][]any{}
	var tables []*Table
	for _, r := range b.rows {
		if byTable[r.table] == nil {
			tables = append(tables, r.table)
		}
		byTable[r.table] = append(byTable[r.table], r.values)
	}
	for _, t := range tables {
		if len(byTable[t]) >= minCopied {
			continue
		}
		insert := t.insert()
		for _, values := range byTable[t] {
			batch.Queue(insert, values...)
		}
	}
	if err := send(ctx, tx, batch, first); err != nil {
		return err
	}
	for _, t := range tables {
		if rows := byTable[t]; len(rows) >= minCopied {
			if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.Columns, pgx.CopyFromRows(rows)); err != nil {
				return err
			}
		}
	}
	return nil
}

func send(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, first func(pgconn.CommandTag) error) error {
	results := tx.SendBatch(ctx, batch)
	if first == nil {
		return results.Close()
	}
	tag, err := results.Exec()
	if err == nil {
		if err := first(tag); err != nil {
			_ = results.Close() // the other results no longer matter
			return err
		}
	}
	return errors.Join(err, results.Close())
}

// insert returns the statement that adds one row.
func (t *Table) insert() string {
	parameters := make([]string, len(t.Columns))
	for i := range parameters {
		parameters[i] = fmt.Sprintf("$%d", i+1)
	}
	return `insert into ` + t.Name + ` (` + strings.Join(t.Columns, ", ") + `) values (` + strings.Join(parameters, ", ") + `)`
}

// applyEvent queues the statements of an event. It turns a panic of apply into an error.
func applyEvent(apply func(*Batch, events.Recorded) error, b *Batch, e events.Recorded) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the handler of %s panicked: %v", e.Name, cause)
		}
	}()
	if e.Err != nil {
		return e.Err
	}
	b.stream = e.Stream
	return apply(b, e)
}
