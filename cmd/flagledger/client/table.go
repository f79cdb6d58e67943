package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"flagledger/cmd/flagledger/terminal"
)

// table prints text of the service in columns.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) *table { return &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row prints a line of cells. An empty cell is a dash.
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if cells[i] = terminal.Printable(cell); cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// part ends the columns so far, and begins new ones after an empty line.
func (t *table) part() {
	_ = t.Flush() // whose error comes again
	fmt.Fprintln(t)
}

// printJSON prints JSON of the service. Characters that could drive a terminal are escaped, so its meaning stays.
func printJSON(w io.Writer, text []byte) error {
	_, err := fmt.Fprintf(w, "%s\n", terminal.PrintableJSON(bytes.TrimSpace(text)))
	return err
}

// brief shortens a value for a column.
func brief(value []byte) string {
	const most = 60
	if runes := []rune(string(value)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(value)
}

// values joins the values of a condition.
func values(list []json.RawMessage) string {
	texts := make([]string, len(list))
	for i, value := range list {
		texts[i] = string(value)
	}
	return brief([]byte(strings.Join(texts, ", ")))
}

// condition is a condition in words.
func condition(attribute, op string, list []json.RawMessage, negate bool) string {
	text := strings.TrimSpace(attribute + " " + op + " " + values(list))
	if negate {
		return "not " + text
	}
	return text
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// text returns what p points to, or nothing.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
