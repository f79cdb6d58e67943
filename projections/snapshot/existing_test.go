package snapshot

import (
	"testing"
)

// Only a complete snapshot may decide what to remove.
func TestASnapshotThatLacksFactsIsNotComplete(t *testing.T) {
	s := of(three, on)
	if s.live.Store(true); !s.Complete() {
		t.Error("it is not complete, though it has all")
	}
	if s.faults.Add(1); s.Complete() {
		t.Error("it is complete, though a fact could not be applied")
	}
}
