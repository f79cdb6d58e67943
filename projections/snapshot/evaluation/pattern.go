package evaluation

import (
	"encoding/json"
	"regexp"

	"github.com/maypok86/otter/v2"

	"flagledger/events/rules"
)

// pattern is a regular expression of a rule. It is compiled at its first match, because its program may be hundreds of
// times as large as its text.
type pattern struct {
	text string
	size int // rules.RegexpSize; 0 if it is parsed at its first match
}

// readPattern parses a pattern if parsing, the remaining rules.RegexpCost, allows it. Facts of an earlier release may
// cost more.
func readPattern(value json.RawMessage, parsing *int) (p pattern, err error) {
	if p.text, err = rules.ReadText(value); err != nil {
		return p, err
	}
	cost := rules.RegexpCost(p.text)
	if cost > *parsing {
		return p, nil
	}
	*parsing -= cost
	if p.size, err = rules.RegexpSize(p.text); err != nil {
		return p, errPattern
	}
	return p, nil
}

const (
	// maxPrograms limits the memory of the compiled patterns of all flags, in bytes.
	maxPrograms = 64 << 20
	// The measured memory of a program: per unit of its size, and fixed.
	sizeBytes, programBytes = 128, 1024
	// compileEffort is the cost of compiling per unit of a pattern's size, parseEffort that of parsing per
	// rules.RegexpCost.
	compileEffort, parseEffort = 100, 20
	// maxParseEffort limits the cost that is charged for parsing, so that expensive patterns of an earlier release
	// still work.
	maxParseEffort = maxEffort / 2
)

// program is a compiled pattern, and its rules.RegexpSize.
type program struct {
	*regexp.Regexp
	size int
}

// programs caches the compiled patterns of all flags that are matched most.
var programs = otter.Must(&otter.Options[pattern, program]{
	MaximumWeight: maxPrograms,
	Weigher: func(p pattern, compiled program) uint32 {
		return uint32(compiled.size*sizeBytes + len(p.text) + programBytes)
	},
})

// program returns the compiled pattern, and charges its compilation to left. If that is too little, left becomes
// negative and ok is false.
func (p pattern) program(left *effort) (compiled program, ok bool) {
	if compiled, ok = programs.GetIfPresent(p); ok {
		return compiled, true
	}
	parse := parseEffort * effort(rules.RegexpCost(p.text))
	if p.size == 0 {
		parse *= 2 // for its size too
	}
	if *left -= min(parse, maxParseEffort); *left < 0 {
		return program{}, false
	}
	compiled.size = p.size
	var err error
	if p.size == 0 {
		compiled.size, err = rules.RegexpSize(p.text)
	}
	if *left -= compileEffort * effort(compiled.size); err != nil || *left < 0 {
		*left = min(*left, -1)
		return program{}, false
	}
	if compiled.Regexp, err = regexp.Compile(p.text); err != nil { // never, because its size could be computed
		*left = -1
		return program{}, false
	}
	programs.Set(p, compiled)
	return compiled, true
}
