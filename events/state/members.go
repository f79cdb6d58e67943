package state

import (
	"encoding/json"
	"iter"
	"slices"

	"flagledger/events"
)

// memberChunk is about the number of texts of a chunk of members.
const memberChunk = 512

// memberOverhead is what a member takes in memory beside its text, in bytes.
const memberOverhead = 32

// Members is a set of texts. It is immutable: a change copies only the chunks that change, so that one more member of
// a hundred thousand costs little.
type Members struct {
	chunks []sortedTexts // none is empty; their texts are sorted across all
	firsts sortedTexts   // the first text of each chunk
	count  int
	bytes  int // of all texts
}

// NewMembers returns the set of the texts.
func NewMembers(texts []string) Members { return Members{}.With(texts) }

// Len returns the number of members.
func (m *Members) Len() int { return m.count }

// Bytes returns the size that counts against limits: that of the texts as JSON, about.
func (m Members) Bytes() int { return m.bytes + m.count*len(`"",`) }

// Has reports whether a text is a member. It does not allocate.
func (m *Members) Has(text string) bool {
	i, found := m.firsts.search(text)
	if found || i == 0 {
		return found
	}
	_, found = m.chunks[i-1].search(text)
	return found
}

// Equal reports whether two sets have the same members.
func (m Members) Equal(other Members) bool { return slices.Equal(m.List(0, 0), other.List(0, 0)) }

// All yields the members in order.
func (m Members) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, chunk := range m.chunks {
			for _, text := range chunk.texts {
				if !yield(text) {
					return
				}
			}
		}
	}
}

// List returns the members in order, from an offset on and at most limit; all for a limit of 0.
func (m Members) List(offset, limit int) []string {
	n := max(0, m.count-offset)
	if limit > 0 {
		n = min(n, limit)
	}
	list := make([]string, 0, n)
	for _, chunk := range m.chunks {
		if len(list) == n {
			break
		}
		skipped := min(offset, len(chunk.texts))
		offset -= skipped
		list = append(list, chunk.texts[skipped:min(len(chunk.texts), skipped+n-len(list))]...)
	}
	return list
}

// With returns the set with more members.
func (m Members) With(texts []string) Members {
	return m.change(texts, func(chunk, more []string) []string {
		merged := make([]string, 0, len(chunk)+len(more))
		for len(chunk) > 0 && len(more) > 0 {
			switch {
			case chunk[0] < more[0]:
				merged, chunk = append(merged, chunk[0]), chunk[1:]
			case chunk[0] > more[0]:
				merged, more = append(merged, more[0]), more[1:]
			default:
				more = more[1:]
			}
		}
		return append(append(merged, chunk...), more...)
	})
}

// Without returns the set without some members.
func (m Members) Without(texts []string) Members {
	return m.change(texts, func(chunk, fewer []string) []string {
		var rest []string
		for _, text := range chunk {
			if _, gone := slices.BinarySearch(fewer, text); !gone {
				rest = append(rest, text)
			}
		}
		return rest
	})
}

// change returns the set with the chunks that some texts belong to replaced.
func (m Members) change(texts []string, replace func(chunk, texts []string) []string) Members {
	if !slices.IsSorted(texts) {
		texts = slices.Sorted(slices.Values(texts))
	}
	texts = slices.Compact(slices.Clone(texts))
	next := Members{chunks: make([]sortedTexts, 0, len(m.chunks)+1), count: m.count, bytes: m.bytes}
	for i := range max(1, len(m.chunks)) {
		var chunk sortedTexts
		if i < len(m.chunks) {
			chunk = m.chunks[i]
		}
		n := len(texts)
		if i+1 < len(m.chunks) {
			n, _ = slices.BinarySearch(texts, m.chunks[i+1].texts[0])
		}
		if n == 0 {
			if len(chunk.texts) > 0 {
				next.chunks = append(next.chunks, chunk)
			}
			continue
		}
		after := replace(chunk.texts, texts[:n])
		texts = texts[n:]
		next.count += len(after) - len(chunk.texts)
		next.bytes += textSize(after) - textSize(chunk.texts)
		next.addChunks(after)
	}
	if len(next.chunks) > 8+4*next.count/memberChunk { // removals have left small chunks
		list := next.List(0, 0)
		next.chunks = nil
		next.addChunks(list)
	}
	firsts := make([]string, len(next.chunks))
	for i := range next.chunks {
		firsts[i] = next.chunks[i].texts[0]
	}
	next.firsts = newSortedTexts(firsts)
	return next
}

// addChunks adds texts as one chunk, or as several if they are many.
func (m *Members) addChunks(texts []string) {
	for len(texts) > 2*memberChunk {
		m.chunks, texts = append(m.chunks, newSortedTexts(slices.Clip(texts[:memberChunk]))), texts[memberChunk:]
	}
	if len(texts) > 0 {
		m.chunks = append(m.chunks, newSortedTexts(slices.Clip(texts)))
	}
}

// Minus returns the members that another set lacks, in order.
func (m Members) Minus(other Members) []string {
	rest := []string{}
	for text := range m.All() {
		if !other.Has(text) {
			rest = append(rest, text)
		}
	}
	return rest
}

// MarshalJSON writes the members as a list.
func (m Members) MarshalJSON() ([]byte, error) { return events.Marshal(m.List(0, 0)) }

// UnmarshalJSON reads a list.
func (m *Members) UnmarshalJSON(data []byte) error {
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	*m = NewMembers(texts)
	return nil
}

func textSize(texts []string) (n int) {
	for _, text := range texts {
		n += len(text)
	}
	return n
}
