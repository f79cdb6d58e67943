package state_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events/state"
)

// Members hold what a plain set holds, whatever is added and removed.
func TestMembersEqualPlainSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, plain := state.Members{}, map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			first, n := rapid.IntRange(0, 4000).Draw(t, "first"), rapid.IntRange(0, 2500).Draw(t, "n")
			step := rapid.IntRange(1, 5).Draw(t, "step")
			add := rapid.Bool().Draw(t, "add")
			var texts []string
			for i := range n {
				texts = append(texts, fmt.Sprint(first+i*step))
			}
			before := members
			was := before.List(0, 0)
			if add {
				members = members.With(texts)
			} else {
				members = members.Without(texts)
			}
			for _, text := range texts {
				if add {
					plain[text] = true
				} else {
					delete(plain, text)
				}
			}
			if !slices.Equal(before.List(0, 0), was) {
				t.Fatal("a change has changed the set before it")
			}
		}
		want := slices.Sorted(maps.Keys(plain))
		if got := members.List(0, 0); !slices.Equal(got, want) || members.Len() != len(want) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
		bytes := 0
		for _, text := range want {
			bytes += len(text) + 3
		}
		if members.Bytes() != bytes {
			t.Fatalf("%d bytes, want %d", members.Bytes(), bytes)
		}
		offset, limit := rapid.IntRange(0, 5000).Draw(t, "offset"), rapid.IntRange(1, 1500).Draw(t, "limit")
		page := want[min(offset, len(want)):]
		if got := members.List(offset, limit); !slices.Equal(got, page[:min(limit, len(page))]) {
			t.Fatalf("the page from %d has %d members", offset, len(got))
		}
		for i := range 50 {
			if text := fmt.Sprint(i * 200); members.Has(text) != plain[text] {
				t.Fatalf("has %s: %v", text, members.Has(text))
			}
		}
		for _, text := range page[:min(limit, len(page))] {
			if !members.Has(text) {
				t.Fatalf("%s is missing", text)
			}
		}
	})
}
