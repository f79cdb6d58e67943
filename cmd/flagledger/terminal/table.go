package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints text of others in columns. Flush prints what is left.
type Table struct{ *tabwriter.Writer }

// NewTable returns a table that prints to w.
func NewTable(w io.Writer) *Table { return &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// Row adds a line of cells. An empty cell is a dash. Errors come with Flush.
func (t *Table) Row(cells ...string) {
	for i, cell := range cells {
		if cells[i] = Printable(cell); cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// Part ends the columns so far, and begins new ones after an empty line.
func (t *Table) Part() {
	_ = t.Flush() // whose error comes again
	fmt.Fprintln(t)
}

// PrintJSON prints JSON on a line.
func PrintJSON(w io.Writer, text []byte) error {
	_, err := fmt.Fprintf(w, "%s\n", PrintableJSON(bytes.TrimSpace(text)))
	return err
}
