package events

import "encoding/json"

// What the ids, salts and names of members take, beside the texts and values that somebody chose, and what a node needs to find a value of a condition.
const (
	flagBytes      = 384
	variationBytes = 128
	ruleBytes      = 192
	conditionBytes = 64
	operandBytes   = 16
	serveBytes     = 96
	shareBytes     = 96
)

// FlagBytes is how many bytes a flag has after a fact, where it had before until then; 0 for one that was deleted. They are about those of its texts, values
// and rules as JSON, and 16 for each value of a condition, so that the memory that a flag takes is a small multiple of them, whatever it is made of.
//
// The rules of a deleted environment count until their flag is deleted.
func FlagBytes(before int, fact FlagFact) int {
	switch fact := fact.(type) {
	case FlagCreated:
		before = flagBytes + len(fact.Key) + textBytes(fact.Name) + len(fact.DefaultValue) + textBytes(fact.Description) + textsBytes(fact.Tags)
		for _, v := range fact.Variations {
			before += v.bytes()
		}
	case FlagUpdated:
		before += grown(fact.Name, textBytes) + grown(fact.DefaultValue, valueBytes) + grown(fact.Description, textBytes) + grown(fact.Tags, textsBytes)
	case VariationAdded:
		before += fact.Variation.bytes()
	case VariationUpdated:
		before += grown(fact.Name, textBytes) + grown(fact.Value, valueBytes) + grown(fact.Description, textBytes)
	case VariationRemoved:
		before -= fact.Variation.bytes()
	case RulesChanged:
		for _, r := range fact.Added {
			before += r.bytes()
		}
		for _, r := range fact.Removed {
			before -= r.bytes()
		}
		for i := range fact.Changed {
			before += grown(&fact.Changed[i], Rule.bytes)
		}
	case FallthroughChanged:
		before += grown(&Change[*Serve]{fact.From, fact.To}, (*Serve).bytes)
	case FlagDeleted:
		return 0
	case FlagStatusChanged, FlagEnabled, FlagDisabled:
	}
	return before
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
	return variationBytes + textBytes(v.Name) + len(v.Value) + textBytes(v.Description)
}

func (r Rule) bytes() int {
	n := ruleBytes + textBytes(r.Name) + r.Serve.bytes()
	for _, c := range r.Conditions {
		n += conditionBytes + textBytes(c.Attribute)
		for _, v := range c.Values {
			n += operandBytes + len(v) + len(",")
		}
	}
	return n
}

func (s *Serve) bytes() int {
	if s == nil {
		return 0
	}
	return serveBytes + len(s.Value) + textBytes(s.BucketBy) + shareBytes*len(s.Rollout)
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
