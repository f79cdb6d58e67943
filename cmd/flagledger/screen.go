package main

import (
	"bufio"
	"io"

	"github.com/rivo/uniseg"

	"flagledger/cmd/flagledger/terminal"
)

// style is the parameter of a terminal's escape sequence for the look of text.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	purple style = "35"
	cyan   style = "36"
)

// coloured reports whether the environment allows colours on a terminal. See https://no-color.org.
func coloured(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// screen prints foreign text for people: it cannot control a terminal.
type screen struct {
	*bufio.Writer
	colour bool
}

func newScreen(out io.Writer, colour bool) *screen { return &screen{bufio.NewWriter(out), colour} }

// span is text in a style.
type span struct {
	style style
	text  string
}

// put prints text. Errors come with Flush.
func (s *screen) put(spans ...span) {
	for _, span := range spans {
		text := terminal.Printable(span.text)
		if s.colour && span.style != plain && text != "" {
			text = "\x1b[" + string(span.style) + "m" + text + "\x1b[0m"
		}
		_, _ = s.WriteString(text)
	}
}

// line prints text and ends the line.
func (s *screen) line(spans ...span) {
	s.put(spans...)
	_ = s.WriteByte('\n')
}

// padded prints text, padded with spaces to a width.
func (s *screen) padded(width int, p span) {
	s.put(p)
	for range width - columns(p.text) {
		_ = s.WriteByte(' ')
	}
}

// columns returns the width of text on a terminal.
func columns(text string) int { return uniseg.StringWidth(terminal.Printable(text)) }

// maxColumn is how wide a column grows. A wider cell pushes the rest of its line.
const maxColumn = 40

// widen returns the widths of the first columns once they have rows. The last cell of a row needs no width.
func widen(widths []int, rows [][]span, columnCount int) []int {
	for _, row := range rows {
		for i := range min(len(row)-1, columnCount) {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if width := columns(row[i].text); width <= maxColumn {
				widths[i] = max(widths[i], width)
			}
		}
	}
	return widths
}

// row prints cells two spaces apart, the first of them as wide as their columns.
func (s *screen) row(widths []int, cells []span) {
	for i, cell := range cells {
		switch {
		case i == len(cells)-1:
			s.line(cell)
		case i < len(widths):
			s.padded(widths[i], cell)
			s.put(span{plain, "  "})
		default:
			s.put(cell, span{plain, "  "})
		}
	}
}
