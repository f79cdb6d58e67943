package state

import "flagledger/events"

// Overheads in bytes: what ids, salts and the names of members take in JSON beside texts and values, and what a node
// needs to find a value of a condition.
const (
	flagOverhead      = 384
	variationOverhead = 128
	ruleOverhead      = 192
	conditionOverhead = 64
	operandOverhead   = 16
	serveOverhead     = 96
	shareOverhead     = 96
)

// Bytes returns the size of the flag that counts against limits, 0 for one that does not exist: about that of its
// texts, values and rules as JSON, and 16 bytes for each value of a condition. The memory that a flag takes is a small
// multiple of it. Rules of a deleted environment count until the flag is deleted.
func (f *Flag) Bytes() int {
	if !f.Exists {
		return 0
	}
	return f.content()
}

func (f *Flag) content() int {
	n := flagOverhead + len(f.Key) + textBytes(f.Name) + len(f.DefaultValue) + textBytes(f.Description)
	for _, tag := range f.Tags {
		n += textBytes(tag) + len(`"",`)
	}
	for _, v := range f.Variations {
		n += variationOverhead + textBytes(v.Name) + len(v.Value) + textBytes(v.Description)
	}
	for _, rules := range f.Rules {
		for i := range rules {
			n += ruleBytes(&rules[i])
		}
	}
	for _, s := range f.Fallthrough {
		n += serveBytes(&s)
	}
	return n
}

// RulesBytes returns at least how many bytes a list of rules takes as the JSON of a fact.
func RulesBytes(list []events.Rule) int {
	n := len("null")
	for i := range list {
		n += ruleBytes(&list[i])
	}
	return n
}

func ruleBytes(r *events.Rule) int {
	n := ruleOverhead + textBytes(r.Name) + serveBytes(&r.Serve)
	for _, c := range r.Conditions {
		n += conditionOverhead + textBytes(c.Attribute)
		for _, v := range c.Values {
			n += operandOverhead + len(v) + len(",")
		}
	}
	return n
}

func serveBytes(s *events.Serve) int {
	return serveOverhead + len(s.Value) + textBytes(s.BucketBy) + shareOverhead*len(s.Rollout)
}

// textBytes returns at least how many bytes a text takes in JSON, without its quotes.
func textBytes(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ':
			n += len(`\u0000`) - 1
		case c == '"' || c == '\\':
			n++
		case c == 0xe2: // the line separators U+2028 and U+2029, of three bytes, take six
			n += 3
		}
	}
	return n
}
