package esdbtest

import (
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// record is an event in the log.
type record struct {
	id              uuid.UUID
	stream          string
	revision        uint64
	commit, prepare uint64
	metadata        map[string]string
	custom, data    []byte
}

// proposed is an event to append.
type proposed struct {
	id           uuid.UUID
	metadata     map[string]string
	custom, data []byte
}

// expectation is the expected revision of an append.
type expectation struct {
	kind     expectationKind
	revision uint64
}

type expectationKind int

const (
	exact expectationKind = iota
	noStream
	streamExists
	anything
)

// log holds all events in order, with positions that grow like offsets in a file. The events of one append share a
// commit position after their last prepare position, so that a test fails if code confuses the two.
type log struct {
	mu      sync.Mutex
	end     uint64
	records []*record
	streams map[string]*stream
	changed chan struct{} // closed at the next append
}

type stream struct {
	records   []*record
	first     map[uuid.UUID]int // the first record of each event id
	truncated int               // number of deleted records
	tombstone bool              // no append is possible any more
}

func newLog() *log {
	l := &log{changed: make(chan struct{})}
	l.empty()
	return l
}

// empty replaces the log with a new one.
func (l *log) empty() {
	l.mu.Lock()
	l.records, l.streams, l.end = nil, map[string]*stream{}, 1000
	l.mu.Unlock()
	// A real log starts with the server's own events.
	l.append("$settings", expectation{kind: anything},
		[]proposed{{id: uuid.New(), metadata: meta("$UpdateSettings"), data: []byte("{}")}})
}

func meta(eventType string) map[string]string {
	return map[string]string{"type": eventType, "content-type": "application/json"}
}

// outcome is the result of an append or a deletion; last is nil if it was refused.
type outcome struct {
	deleted  bool
	repeated bool // it was applied before
	last     *record
	current  int64 // revision of the stream, -1 if it does not exist
}

// append adds events as the real server does. An append is a repetition and succeeds if its ids follow the expected
// revision, or, without one, occur anywhere in the stream.
func (l *log) append(name string, expected expectation, list []proposed) outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[name]
	if s == nil {
		s = &stream{first: map[uuid.UUID]int{}}
	}
	current := int64(len(s.records)) - 1
	if s.tombstone {
		return outcome{deleted: true, current: current}
	}
	after := current // the revision before the first event
	switch expected.kind {
	case exact:
		after = int64(expected.revision)
	case noStream:
		after = -1
	case streamExists:
		if current < 0 {
			return outcome{current: current}
		}
	case anything:
	}
	if expected.kind == anything || expected.kind == streamExists {
		if i, ok := s.first[list[0].id]; ok {
			after = int64(i) - 1
		}
	}
	switch softDeleted := s.truncated > 0 && s.truncated == len(s.records); {
	case after > current:
		return outcome{current: current}
	case after < current && s.holds(after, list):
		return outcome{repeated: true, last: s.records[after+int64(len(list))], current: current}
	case after < current && (expected.kind != noStream || !softDeleted):
		return outcome{current: current}
	}
	l.streams[name] = s
	for _, p := range list {
		r := &record{
			id:       p.id,
			stream:   name,
			revision: uint64(len(s.records)),
			prepare:  l.end,
			custom:   p.custom,
			data:     p.data,
			metadata: p.metadata,
		}
		r.metadata["created"] = strconv.FormatInt(time.Now().UnixNano()/100, 10)
		l.end += 150 + uint64(len(p.data)+len(p.custom))
		if _, ok := s.first[p.id]; !ok {
			s.first[p.id] = len(s.records)
		}
		s.records = append(s.records, r)
		l.records = append(l.records, r)
	}
	for _, r := range s.records[len(s.records)-len(list):] {
		r.commit = l.end
	}
	l.end += 100
	close(l.changed)
	l.changed = make(chan struct{})
	return outcome{last: s.records[len(s.records)-1], current: int64(len(s.records)) - 1}
}

// holds reports whether these events follow a revision in the stream, in this order.
func (s *stream) holds(after int64, list []proposed) bool {
	for i, p := range list {
		at := after + 1 + int64(i)
		if at >= int64(len(s.records)) || s.records[at].id != p.id {
			return false
		}
	}
	return true
}

// delete hides a stream's events, or closes the stream for good.
func (l *log) delete(name string, tombstone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[name]
	if s == nil {
		s = &stream{first: map[uuid.UUID]int{}}
		l.streams[name] = s
	}
	s.truncated = len(s.records)
	s.tombstone = tombstone
}

// all returns the log and a channel that is closed when it grows.
func (l *log) all() ([]*record, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.records[:len(l.records):len(l.records)], l.changed
}

// stream returns the events of a stream that are not deleted.
func (l *log) stream(name string) (records []*record, tombstone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[name]
	if s == nil {
		return nil, false
	}
	return s.records[s.truncated:len(s.records):len(s.records)], s.tombstone
}
