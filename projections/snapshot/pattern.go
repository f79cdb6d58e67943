package snapshot

import (
	"encoding/json"
	"regexp"

	"github.com/maypok86/otter/v2"

	"flagledger/events/rules"
)

// pattern is a regular expression of a rule. It is compiled when it is first matched: its program may be hundreds of times as large as its text.
type pattern struct {
	text string
	size int // rules.RegexpSize
}

func readPattern(value json.RawMessage) (p pattern, err error) {
	if p.text, err = rules.ReadText(value); err != nil {
		return p, err
	}
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
	// compileEffort is the cost of compiling, for each unit of a pattern's size.
	compileEffort = 100
)

// programs holds the compiled patterns that are matched most, of all flags together.
var programs = otter.Must(&otter.Options[pattern, *regexp.Regexp]{
	MaximumWeight: maxPrograms,
	Weigher: func(p pattern, _ *regexp.Regexp) uint32 {
		return uint32(p.size*sizeBytes + len(p.text) + programBytes)
	},
})

// program returns the compiled pattern. It is nil where compiling would cost more than is left.
func (p pattern) program(left *effort) *regexp.Regexp {
	if compiled, ok := programs.GetIfPresent(p); ok {
		return compiled
	}
	if *left -= compileEffort * effort(p.size); *left < 0 {
		return nil
	}
	compiled, err := regexp.Compile(p.text)
	if err != nil { // never: its size could be told
		return nil
	}
	programs.Set(p, compiled)
	return compiled
}
