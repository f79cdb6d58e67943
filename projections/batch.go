package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Batch gathers what one transaction does to take in events. The zero value does nothing.
type Batch struct {
	stream  string // of the event that is being taken in
	first   []call
	changes []*change
	last    []*change
	rows    []*row
}

// call is SQL that is run by itself.
type call struct {
	sql  string
	args []any
}

// change is a statement with its arguments of one event. Those with the same key depend on each other.
type change struct {
	key       string
	statement *Statement
	args      []any
}

// Table is a table that rows are added to, with the columns that they have values for.
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

// Queue adds a statement. Those of a stream run in their order; one that several streams have runs for all of them at once.
func (b *Batch) Queue(s *Statement, args ...any) {
	b.changes = append(b.changes, &change{b.stream, s, args})
}

// QueueLast adds a statement that runs after those of Queue. Of several with the same key the last one alone runs.
func (b *Batch) QueueLast(key string, s *Statement, args ...any) {
	b.last = append(b.last, &change{key, s, args})
}

// Insert adds a row to a table. It is there after all statements have run.
func (b *Batch) Insert(t *Table, values ...any) { b.rows = append(b.rows, &row{t, values}) }

// mark is how far a batch was filled.
type mark struct{ changes, last, rows int }

func (b *Batch) mark() mark { return mark{len(b.changes), len(b.last), len(b.rows)} }

// truncate takes back what was added after a mark.
func (b *Batch) truncate(m mark) {
	b.changes, b.last, b.rows = b.changes[:m.changes], b.last[:m.last], b.rows[:m.rows]
}

func (b *Batch) empty() bool { return len(b.first) == 0 && b.mark() == mark{} }

// minCopied is from how many rows on they are copied to a table: that takes two more round trips, and a fraction of the time for each row.
const minCopied = 32

// Run does it all.
func (b *Batch) Run(ctx context.Context, tx pgx.Tx) error { return b.run(ctx, tx, nil) }

// run is Run for a batch whose first statement, if first is not nil, may end the transaction: first is told what it did.
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
			_ = results.Close() // what becomes of the rest does not matter
			return err
		}
	}
	return errors.Join(err, results.Close())
}

// insert is the statement that adds one row.
func (t *Table) insert() string {
	parameters := make([]string, len(t.Columns))
	for i := range parameters {
		parameters[i] = fmt.Sprintf("$%d", i+1)
	}
	return `insert into ` + t.Name + ` (` + strings.Join(t.Columns, ", ") + `) values (` + strings.Join(parameters, ", ") + `)`
}
