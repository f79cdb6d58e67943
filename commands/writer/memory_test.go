package writer

import (
	"time"

	"flagledger/events/eventstest"
)

// newMemory returns a store and a writer on it.
func newMemory() (*eventstest.Memory, *Writer) {
	store := eventstest.NewMemory()
	return store, newWriter(store)
}

// newWriter returns the writer of a node.
func newWriter(store *eventstest.Memory) *Writer {
	return NewWriter(store, NoWait, NoQuotas{}, time.Now)
}
