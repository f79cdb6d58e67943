package rest

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
	MaxDetail      = 1000
)

// bound cuts what a problem repeats of its request. The fields that it names are the first ones in the order of their
// names.
func (p *Problem) bound() {
	p.Detail = Cut(p.Detail, MaxDetail)
	names := slices.Sorted(maps.Keys(p.Errors))
	bounded := make(map[string]string, min(len(names), maxNamedFields))
	for _, name := range names[:min(len(names), maxNamedFields)] {
		bounded[Cut(name, maxFieldName)] = Cut(p.Errors[name], maxFieldText)
	}
	if p.Errors != nil {
		p.Errors = bounded
	}
	if len(names) > maxNamedFields {
		p.Detail += ", and more fields"
	}
}

// Cut cuts a text to at most that many bytes, and marks a cut.
func Cut(text string, most int) string {
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
