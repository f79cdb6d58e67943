package postgres

import (
	"bytes"
	"sync"

	"github.com/google/uuid"

	"flagledger/events"
)

const (
	// largeEvent is the size in bytes of JSON from which subscriptions share a decoded event: decoding smaller ones is
	// faster.
	largeEvent = 8 << 10
	// recentBytes limits the JSON of large events that are cached for later subscriptions.
	recentBytes = 2 << 20
)

// recent caches the latest large events. Several subscriptions of a node read the end of the log at the same time: the
// first one decodes an event, and the others wait for that. Shared events are never changed.
type recent struct {
	mu    sync.Mutex
	byID  map[uuid.UUID]*decoded
	order []*decoded // the oldest first
	bytes int
}

type decoded struct {
	stored events.Stored
	once   sync.Once
	event  events.Event
	err    error
}

// decode fills in an event from its stored form.
func (r *recent) decode(e *events.Recorded) {
	if len(e.Stored.Data) < largeEvent {
		e.Event, e.Err = events.Decode(e.Stored)
		return
	}
	d := r.of(e.Stored)
	d.once.Do(func() { d.event, d.err = events.Decode(d.stored) })
	e.Event, e.Err = d.event, d.err
	e.Stored.Data, e.Stored.Metadata = d.stored.Data, d.stored.Metadata
}

// prepare decodes an event before its append, so that subscriptions need not wait for it.
func (r *recent) prepare(s events.Stored) { r.decode(&events.Recorded{Stored: s}) }

func (r *recent) of(s events.Stored) *decoded {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, known := r.byID[s.ID]
	if known && d.stored.Name == s.Name && d.stored.Version == s.Version && bytes.Equal(d.stored.Data, s.Data) &&
		bytes.Equal(d.stored.Metadata, s.Metadata) {
		return d
	}
	d = &decoded{stored: s}
	if known {
		return d // ids need not be unique in the log
	}
	if r.byID == nil {
		r.byID = map[uuid.UUID]*decoded{}
	}
	r.byID[s.ID] = d
	r.order = append(r.order, d)
	for r.bytes += len(s.Data); r.bytes > recentBytes; {
		oldest := r.order[0]
		delete(r.byID, oldest.stored.ID)
		r.order[0] = nil // otherwise it would stay in memory until the list is copied
		r.order = r.order[1:]
		r.bytes -= len(oldest.stored.Data)
	}
	return d
}
