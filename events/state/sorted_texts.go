package state

import (
	"encoding/binary"
	"slices"
	"strings"
)

// sortedTexts is a sorted list of texts that are found by their first bytes after what all of them begin with, so that
// a search rarely reads a text.
type sortedTexts struct {
	texts  []string
	prefix string   // of all texts
	keys   []uint64 // of each text: see textKey
}

func newSortedTexts(texts []string) sortedTexts {
	s := sortedTexts{texts: texts, keys: make([]uint64, len(texts))}
	if len(texts) > 0 {
		first, last := texts[0], texts[len(texts)-1]
		n := 0
		for n < min(len(first), len(last)) && first[n] == last[n] {
			n++
		}
		s.prefix = first[:n]
	}
	for i, text := range texts {
		s.keys[i] = textKey(text[len(s.prefix):])
	}
	return s
}

// textKey returns the first eight bytes of a text. Its order is that of the texts, but for texts with the same key.
func textKey(text string) uint64 {
	var key [8]byte
	copy(key[:], text)
	return binary.BigEndian.Uint64(key[:])
}

// search returns the place of a text, or that at which it would be.
func (s *sortedTexts) search(text string) (place int, found bool) {
	if !strings.HasPrefix(text, s.prefix) {
		if text < s.prefix {
			return 0, false
		}
		return len(s.texts), false
	}
	key := textKey(text[len(s.prefix):])
	place, _ = slices.BinarySearch(s.keys, key)
	if place == len(s.keys) || s.keys[place] != key {
		return place, false
	}
	if s.texts[place] == text {
		return place, true
	}
	i, found := slices.BinarySearch(s.texts[place:], text) // other texts have the key too
	return place + i, found
}
