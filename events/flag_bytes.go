package events

import "encoding/json"

// The fixed sizes of ids, salts and member names, beside the chosen texts and values, and of an index entry of a
// condition's value.
const (
	flagOverhead      = 384
	variationOverhead = 128
	ruleOverhead      = 192
	conditionOverhead = 64
	operandOverhead   = 16
	serveOverhead     = 96
	shareOverhead     = 96
)

// FlagBytesAfter returns the size of a flag after a fact, from its size before, which is 0 for a deleted one. It
// approximates the JSON of texts, values and rules, plus 16 bytes for each value of a condition: the memory of a flag
// is a small multiple.
//
// The rules of a deleted environment count until the flag is deleted.
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

// RulesBytes returns a lower bound of the size of a list of rules in JSON.
func RulesBytes(list []Rule) int {
	n := len("null")
	for _, r := range list {
		n += r.bytes()
	}
	return n
}

// grown returns the growth of a field, 0 if it has not changed.
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

// textBytes returns a lower bound of the size of a text in JSON without quotes.
func textBytes(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ':
			n += len(`\u0000`) - 1
		case c == '"' || c == '\\':
			n++
		case c == 0xe2: // U+2028 and U+2029 have three bytes, and six escaped
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
