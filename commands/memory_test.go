package commands

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// memory is a store in memory that fails after a number of appends.
type memory struct {
	events.Store
	mu          sync.Mutex
	streams     map[string][]events.Recorded
	appendsLeft int
	commit      uint64
	read        int // number of events read
	reads       int
	failing     error // of appends
}

var errDied = errors.New("the node died")

// newMemory returns a store and a writer on it.
func newMemory() (*memory, *Writer) {
	store := &memory{streams: map[string][]events.Recorded{}, appendsLeft: 1_000_000}
	return store, store.writer()
}

// writer returns the writer of one more node.
func (m *memory) writer() *Writer {
	return NewWriter(m, NoWait, NoQuotas{}, time.Now)
}

// Append implements events.Store.
func (m *memory) Append(
	_ context.Context, stream string, expected events.Revision, list []events.Event,
) (events.Appended, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.appendsLeft--; m.appendsLeft < 0 {
		return events.Appended{}, errDied
	}
	if m.failing != nil {
		return events.Appended{}, m.failing
	}
	if int(expected) != len(m.streams[stream]) {
		return events.Appended{}, events.ErrConflict
	}
	var appended events.Appended
	for _, e := range list {
		m.commit++
		at := time.Now().UTC().Truncate(time.Microsecond)
		appended.Recorded = append(appended.Recorded, at)
		m.streams[stream] = append(m.streams[stream], events.Recorded{
			Event:    e,
			Stream:   stream,
			Revision: events.Revision(len(m.streams[stream]) + 1),
			Name:     e.Fact.StoredName(),
			Position: m.position(),
			At:       at,
		})
	}
	appended.Position = m.position()
	return appended, nil
}

func (m *memory) position() events.Position {
	return events.Position{Commit: m.commit, Prepare: m.commit}
}

// Read implements events.Store.
func (m *memory) Read(_ context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	list := slices.Clone(m.streams[stream])
	return func(yield func(events.Recorded, error) bool) {
		for _, r := range list {
			if r.Revision < from {
				continue
			}
			m.mu.Lock()
			m.read++
			m.mu.Unlock()
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Find implements events.Store.
func (m *memory) Find(_ context.Context, stream string, id uuid.UUID) (events.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.streams[stream] {
		if r.ID == id {
			return r.Revision, nil
		}
	}
	return 0, nil
}

// Log implements events.Store.
func (m *memory) Log(context.Context) (events.Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return events.Log{End: m.position()}, nil
}

// Head implements events.Store.
func (m *memory) Head(context.Context) (events.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position(), nil
}
