package snapshot

import (
	"encoding/json"
	"regexp"

	"github.com/maypok86/otter/v2"

	"flagledger/events/rules"
)

// pattern is a regular expression of a rule. It is compiled when it is first matched: its program may be hundreds of
// times as large as its text.
type pattern struct {
	text string
	size int // rules.RegexpSize; 0 for one that is parsed when it is first matched
}

// readPattern parses a pattern if that costs no more than is left of parsing, a sum of rules.RegexpCost. It may cost
// more in facts of an earlier release.
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
	// maxPrograms bounds the memory of the compiled patterns of all flags, in bytes.
	maxPrograms = 64 << 20
	// The measured memory of a program: for each unit of its size, and as a whole.
	sizeBytes, programBytes = 128, 1024
	// compileEffort is the cost of compiling, for each unit of a pattern's size, and parseEffort that of parsing, for each
	// of rules.RegexpCost.
	compileEffort, parseEffort = 100, 20
	// maxParseEffort is the most that parsing a pattern counts, so that one of an earlier release that costs more serves
	// all the same.
	maxParseEffort = maxEffort / 2
)

// program is a compiled pattern, and its rules.RegexpSize.
type program struct {
	*regexp.Regexp
	size int
}

// programs holds the compiled patterns that are matched most, of all flags together.
var programs = otter.Must(&otter.Options[pattern, program]{
	MaximumWeight: maxPrograms,
	Weigher: func(p pattern, compiled program) uint32 {
		return uint32(compiled.size*sizeBytes + len(p.text) + programBytes)
	},
})

// program returns the compiled pattern. It takes what compiling costs from what is left; where that is too little, left
// is negative and there is no program.
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
	if compiled.Regexp, err = regexp.Compile(p.text); err != nil { // never: its size could be told
		*left = -1
		return program{}, false
	}
	programs.Set(p, compiled)
	return compiled, true
}
