package main

import (
	"fmt"
	"iter"
	"strings"

	"flagledger/cmd/flagledger/node/settings"
)

// Help lists the settings, for flagledger serve --help.
func (serveCommand) Help() string {
	var b strings.Builder
	b.WriteString("Settings are environment variables. docs/operate/settings.md has the same list.\n")
	for _, group := range settings.List() {
		fmt.Fprintf(&b, "\n%s:\n", group.Name)
		for _, s := range group.Settings {
			fmt.Fprintf(&b, "\n    %s\n", s.Name)
			for line := range wrapped(strings.ReplaceAll(s.Meaning, "`", ""), 90) {
				fmt.Fprintf(&b, "        %s\n", line)
			}
			if s.Default != "" {
				fmt.Fprintf(&b, "        Default: %s\n", s.Default)
			}
		}
	}
	return b.String()
}

// wrapped yields the lines of a text, wrapped at a length.
func wrapped(text string, longest int) iter.Seq[string] {
	return func(yield func(string) bool) {
		line := ""
		for word := range strings.FieldsSeq(text) {
			if line != "" && len(line)+1+len(word) > longest {
				if !yield(line) {
					return
				}
				line = ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		yield(line)
	}
}
