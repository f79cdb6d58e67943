package http

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// An answer about a bad request must not be larger than the request: it names at most 100 fields, and cuts what is
// long.
const (
	maxNamedFields = 100
	maxFieldName   = 200 // bytes
	maxFieldText   = 500 // bytes
	maxDetail      = 1000
)

// bound cuts what a problem repeats of its request. The fields that it names are the first ones in the order of their
// names.
func (p *problem) bound() {
	p.Detail = cut(p.Detail, maxDetail)
	names := slices.Sorted(maps.Keys(p.Errors))
	bounded := make(map[string]string, min(len(names), maxNamedFields))
	for _, name := range names[:min(len(names), maxNamedFields)] {
		bounded[cut(name, maxFieldName)] = cut(p.Errors[name], maxFieldText)
	}
	if p.Errors != nil {
		p.Errors = bounded
	}
	if len(names) > maxNamedFields {
		p.Detail += ", and more fields"
	}
}

// cut cuts a text to at most that many bytes, and marks a cut.
func cut(text string, most int) string {
	const mark = "..."
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end]) + mark
}
