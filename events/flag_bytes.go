package events

import "encoding/json"

// What the ids, salts and names of members take, beside the texts and values that somebody chose, and what a node needs
// to find a value of a condition.
const (
	flagOverhead      = 384
	variationOverhead = 128
	ruleOverhead      = 192
	conditionOverhead = 64
	operandOverhead   = 16
	serveOverhead     = 96
	shareOverhead     = 96
)

// FlagBytesAfter is the size of a flag after a fact, from its size before: 0 for one that was deleted. It is about that
// of the flag's texts, values and rules as JSON, and 16 bytes for each value of a condition, so that the memory that a
// flag takes is a small multiple of it.
//
// The rules of a deleted environment count until their flag is deleted.
func FlagBytesAfter(n int, fact FlagFact) int {
	switch fact := fact.(type) {
	case FlagCreated:
		n = flagOverhead + len(fact.Key) + textBytes(fact.Name) + len(fact.DefaultValue) + textBytes(fact.Description) +
			textsBytes(fact.Tags)
		for _, v := range fact.Variations {
			n += v.bytes()
		}
	case FlagUpdated:
		n += grown(fact.Name, textBytes) + grown(fact.DefaultValue, valueBytes) + grown(fact.Description, textBytes) +
			grown(fact.Tags, textsBytes)
	case VariationAdded:
		n += fact.Variation.bytes()
	case VariationUpdated:
		n += grown(fact.Name, textBytes) + grown(fact.Value, valueBytes) + grown(fact.Description, textBytes)
	case VariationRemoved:
		n -= fact.Variation.bytes()
	case RulesChanged:
		for _, r := range fact.Added {
			n += r.bytes()
		}
		for _, r := range fact.Removed {
			n -= r.bytes()
		}
		for i := range fact.Changed {
			n += grown(&fact.Changed[i], Rule.bytes)
		}
	case FallthroughChanged:
		n += grown(&Change[*Serve]{fact.From, fact.To}, (*Serve).bytes)
	case FlagDeleted:
		return 0
	case FlagStatusChanged, FlagEnabled, FlagDisabled, FlagReverted:
	}
	return n
}

// RulesBytes is at least how many bytes a list of rules takes as the JSON of a fact.
func RulesBytes(list []Rule) int {
	n := len("null")
	for _, r := range list {
		n += r.bytes()
	}
	return n
}

// grown is by how much a field has grown, 0 where it has not changed.
func grown[T any](c *Change[T], bytes func(T) int) int {
	if c == nil {
		return 0
	}
	return bytes(c.To) - bytes(c.From)
}

func (v Variation) bytes() int {
	return variationOverhead + textBytes(v.Name) + len(v.Value) + textBytes(v.Description)
}

func (r Rule) bytes() int {
	n := ruleOverhead + textBytes(r.Name) + r.Serve.bytes()
	for _, c := range r.Conditions {
		n += conditionOverhead + textBytes(c.Attribute)
		for _, v := range c.Values {
			n += operandOverhead + len(v) + len(",")
		}
	}
	return n
}

func (s *Serve) bytes() int {
	if s == nil {
		return 0
	}
	return serveOverhead + len(s.Value) + textBytes(s.BucketBy) + shareOverhead*len(s.Rollout)
}

func valueBytes(v json.RawMessage) int { return len(v) }

// textBytes is at least what a text takes in JSON, its quotes left out.
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

func textsBytes(list []string) (n int) {
	for _, s := range list {
		n += textBytes(s) + len(`"",`)
	}
	return n
}
