package queries

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Page selects a part of a list. A Limit of 0 means all of it.
type Page struct {
	Limit  int
	Offset int
}

// List reads a page of a list in pieces. It holds one piece in memory, and no connection between pieces.
//
// A row that exists throughout is read once, in order. One that changes meanwhile is read as it was before or after.
type List[T any] struct {
	Rows  []T // the first piece
	Total int // of the rows in all pages
	// Places counts the rows of the page before pieces are read. A list by keys may return fewer if rows were deleted
	// since its keys were read.
	Places int

	db            reader
	columns, from string
	order         string // unique columns
	descending    bool
	args          []any
	after         []any    // the order columns of the last row read
	batch         int      // how many rows to read next
	left          int      // rows of the page; negative without a limit
	more          bool     // rows may be left
	keys          []string // of the remaining rows of a list by keys; else nil
	byKeys        bool
	wanted        func(T) bool // whether a row still belongs to the list; nil if the query decides
}

const (
	// pieceBytes is the size of a piece: rows are read until they have this many bytes on the wire.
	pieceBytes = 128 << 10
	// Each piece reads twice the rows of the last, up to maxBatch. If the last one reached pieceBytes, it reads as
	// many again.
	firstBatch, maxBatch = 32, 512
)

// list begins to read a page of a list. columns match the fields of T; from is the query from its "from" on, ending in
// a condition. The order columns are not null and together unique, and may end in " desc".
func list[T any](
	ctx context.Context, db reader, columns, from, order string, page Page, args ...any,
) (*List[T], error) {
	return countedList[T](ctx, db, columns, from, order, "select count(*) "+from, page, args...)
}

// countedList works like list, with its own query for the total number of rows.
func countedList[T any](
	ctx context.Context, db reader, columns, from, order, count string, page Page, args ...any,
) (*List[T], error) {
	limit := page.Limit
	if limit == 0 {
		limit = -1
	}
	l := newList[T](db, columns, from, order, limit, args)
	var err error
	if l.Rows, err = l.read(ctx, page.Offset); err != nil {
		return nil, err
	}
	l.Places = len(l.Rows)
	if !l.more && l.left != 0 && (len(l.Rows) > 0 || page.Offset == 0) {
		l.Total = page.Offset + len(l.Rows)
		return l, nil
	}
	err = db.QueryRow(ctx, count, args...).Scan(&l.Total)
	return l, classify(err)
}

// ListOf returns a page of a list in memory.
func ListOf[T any](rows []T, page Page) *List[T] {
	l := &List[T]{Rows: rows[min(page.Offset, len(rows)):], Total: len(rows)}
	if page.Limit > 0 {
		l.Rows = l.Rows[:min(page.Limit, len(l.Rows))]
	}
	l.Places = len(l.Rows)
	return l
}

// listByKeys begins to read a page of a list with known keys. The last argument of from takes the keys of each piece,
// and place gives their order. Keys without a row, or with an unwanted row, are left out.
func listByKeys[T any](
	ctx context.Context, db reader, columns, from, place string, keys []string, page Page, wanted func(T) bool,
	args ...any,
) (*List[T], error) {
	paged := ListOf(keys, page)
	l := &List[T]{
		wanted: wanted, db: db, columns: columns, from: from, order: place, args: args, batch: 2 * firstBatch,
		keys: paged.Rows, byKeys: true, Total: paged.Total, Places: paged.Places,
	}
	var err error
	l.Rows, err = l.readKeys(ctx)
	return l, err
}

// newList returns a list of at most limit rows; a negative limit means no limit.
func newList[T any](db reader, columns, from, order string, limit int, args []any) *List[T] {
	order, descending := strings.CutSuffix(order, " desc")
	return &List[T]{
		db:         db,
		columns:    columns,
		from:       from,
		order:      order,
		descending: descending,
		args:       args,
		batch:      firstBatch,
		left:       limit,
	}
}

// More reports whether there is another piece. It may be empty.
func (l *List[T]) More() bool { return l.more }

// Next reads the next piece, which is empty at the end.
func (l *List[T]) Next(ctx context.Context) ([]T, error) {
	if !l.more {
		return nil, nil
	}
	return l.read(ctx, 0)
}

// All reads the rest of the page.
func (l *List[T]) All(ctx context.Context) ([]T, error) {
	for l.more {
		rows, err := l.read(ctx, 0)
		if err != nil {
			return nil, err
		}
		l.Rows = append(l.Rows, rows...)
	}
	return l.Rows, nil
}

func (l *List[T]) read(ctx context.Context, offset int) (rows []T, err error) {
	if l.byKeys {
		return l.readKeys(ctx)
	}
	limit := l.batch
	if l.left >= 0 {
		limit = min(limit, l.left)
	}
	query, args := l.query(limit, offset)
	rows, full, err := l.collect(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if l.left >= 0 {
		l.left -= len(rows)
	}
	l.more = l.left != 0 && (full || len(rows) == limit)
	l.nextBatch(len(rows), full)
	return rows, nil
}

// readKeys reads the next piece of a list by keys.
func (l *List[T]) readKeys(ctx context.Context) (rows []T, err error) {
	n := min(l.batch, len(l.keys))
	if n == 0 {
		l.more = false
		return nil, nil
	}
	args := slices.Clone(l.args)
	args[len(args)-1] = l.keys[:n]
	rows, full, err := l.collect(ctx, "select "+l.columns+", "+l.order+" "+l.from+" order by "+l.order, args)
	if err != nil {
		return nil, err
	}
	if full {
		n = int(l.after[0].(int64))
	}
	l.keys = l.keys[n:]
	l.more = len(l.keys) > 0
	l.nextBatch(len(rows), full)
	return rows, nil
}

// collect reads rows until they have pieceBytes; full reports whether they reached it.
func (l *List[T]) collect(ctx context.Context, query string, args []any) (rows []T, full bool, err error) {
	result, err := l.db.Query(ctx, query, args...)
	if err != nil {
		return nil, false, classify(err)
	}
	defer result.Close()
	size := 0
	for size < pieceBytes && result.Next() {
		row := orderedRow{Rows: result, order: make([]any, strings.Count(l.order, ",")+1)}
		decoded, err := pgx.RowToStructByName[T](row)
		if err != nil {
			return nil, false, classify(err)
		}
		if l.after = row.order; l.wanted == nil || l.wanted(decoded) {
			rows = append(rows, decoded)
		}
		for _, value := range result.RawValues() {
			size += len(value)
		}
	}
	result.Close()
	return rows, size >= pieceBytes, classify(result.Err())
}

// nextBatch sets how many rows to read next.
func (l *List[T]) nextBatch(read int, full bool) {
	if l.batch = min(2*l.batch, maxBatch); full {
		l.batch = read
	}
}

func (l *List[T]) query(limit, offset int) (string, []any) {
	var query strings.Builder
	args := slices.Clone(l.args)
	parameter := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	fmt.Fprintf(&query, "select %s, %s %s", l.columns, l.order, l.from)
	direction, beyond := "", ">"
	if l.descending {
		direction, beyond = " desc", "<"
	}
	if l.after != nil {
		values := make([]string, len(l.after))
		for i, value := range l.after {
			values[i] = parameter(value)
		}
		fmt.Fprintf(&query, " and (%s) %s (%s)", l.order, beyond, strings.Join(values, ", "))
	}
	inOrder := " order by " + strings.ReplaceAll(l.order, ",", direction+",") + direction
	if offset > 0 { // avoids computing the columns of skipped rows
		fmt.Fprintf(&query, " and (%s) %s= (select %[1]s %[3]s%[4]s limit 1 offset %[5]s)", l.order, beyond, l.from, inOrder,
			parameter(offset))
	}
	query.WriteString(inOrder + " limit " + parameter(limit))
	return query.String(), args
}

// orderedRow is a row whose last columns are those it is ordered by. They are not fields of the decoded struct.
type orderedRow struct {
	pgx.Rows
	order []any
}

// FieldDescriptions implements pgx.CollectableRow.
func (r orderedRow) FieldDescriptions() []pgconn.FieldDescription {
	all := r.Rows.FieldDescriptions()
	return all[:len(all)-len(r.order)]
}

// Scan implements pgx.CollectableRow.
func (r orderedRow) Scan(into ...any) error {
	for i := range r.order {
		into = append(into, &r.order[i])
	}
	return r.Rows.Scan(into...)
}
