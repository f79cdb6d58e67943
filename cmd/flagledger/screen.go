package main

import (
	"bufio"
	"io"
	"unicode/utf8"

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

// shortened returns text cut off after some characters.
func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
