package eventstest

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

// Memory is a store in memory for tests without a subscription. Its appends fail once AppendsLeft is used up.
type Memory struct {
	events.Store
	Mu          sync.Mutex // guards the fields
	Streams     map[string][]events.Recorded
	AppendsLeft int
	Commit      uint64
	EventsRead  int // number of events read
	Reads       int
	Failing     error // of appends
}

// ErrDied is the error of an append without AppendsLeft.
var ErrDied = errors.New("the node died")

// NewMemory returns a store whose appends do not fail.
func NewMemory() *Memory {
	return &Memory{Streams: map[string][]events.Recorded{}, AppendsLeft: 1_000_000}
}

// Append implements events.Store.
func (m *Memory) Append(
	_ context.Context, stream string, expected events.Revision, list []events.Event,
) (events.Appended, error) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if m.AppendsLeft--; m.AppendsLeft < 0 {
		return events.Appended{}, ErrDied
	}
	if m.Failing != nil {
		return events.Appended{}, m.Failing
	}
	if int(expected) != len(m.Streams[stream]) {
		return events.Appended{}, events.ErrConflict
	}
	var appended events.Appended
	for _, e := range list {
		m.Commit++
		at := time.Now().UTC().Truncate(time.Microsecond)
		appended.Recorded = append(appended.Recorded, at)
		m.Streams[stream] = append(m.Streams[stream], events.Recorded{
			Event:    e,
			Stream:   stream,
			Revision: events.Revision(len(m.Streams[stream]) + 1),
			Name:     e.Fact.StoredName(),
			Position: m.position(),
			At:       at,
		})
	}
	appended.Position = m.position()
	return appended, nil
}

func (m *Memory) position() events.Position {
	return events.Position{Commit: m.Commit, Prepare: m.Commit}
}

// Read implements events.Store.
func (m *Memory) Read(_ context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Reads++
	list := slices.Clone(m.Streams[stream])
	return func(yield func(events.Recorded, error) bool) {
		for _, r := range list {
			if r.Revision < from {
				continue
			}
			m.Mu.Lock()
			m.EventsRead++
			m.Mu.Unlock()
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Find implements events.Store.
func (m *Memory) Find(_ context.Context, stream string, id uuid.UUID) (events.Revision, error) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for _, r := range m.Streams[stream] {
		if r.ID == id {
			return r.Revision, nil
		}
	}
	return 0, nil
}

// Log implements events.Store.
func (m *Memory) Log(context.Context) (events.Log, error) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return events.Log{End: m.position()}, nil
}

// Head implements events.Store.
func (m *Memory) Head(context.Context) (events.Position, error) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.position(), nil
}
