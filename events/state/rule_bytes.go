package state

import "flagledger/events"

// Overheads in bytes: what ids, salts and the names of members take in JSON, and what a node needs to find a value of a
// condition.
const (
	ruleOverhead      = 192
	conditionOverhead = 64
	operandOverhead   = 16
	serveOverhead     = 96
	shareOverhead     = 96
)

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
