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

// proposed is an event that is to be appended.
type proposed struct {
	id           uuid.UUID
	metadata     map[string]string
	custom, data []byte
}

// expectation is what an append says of its stream.
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

// log is all events in order, with positions that grow like offsets in a file. The events of one append share a commit
// position after the last of them, so that a test fails which confuses the two halves of a position.
type log struct {
	mu      sync.Mutex
	end     uint64
	records []*record
	streams map[string]*stream
	changed chan struct{} // closed at the next append
}

type stream struct {
	records   []*record
	first     map[uuid.UUID]int // where each event id stands first
	truncated int               // so many records are deleted
	tombstone bool              // and nothing is ever appended again
}

func newLog() *log {
	l := &log{changed: make(chan struct{})}
	l.empty()
	return l
}

// empty gives the server a new log.
func (l *log) empty() {
	l.mu.Lock()
	l.records, l.streams, l.end = nil, map[string]*stream{}, 1000
	l.mu.Unlock()
	// No real log is empty: the server's own events come first.
	l.append("$settings", expectation{kind: anything},
		[]proposed{{id: uuid.New(), metadata: meta("$UpdateSettings"), data: []byte("{}")}})
}

func meta(eventType string) map[string]string {
	return map[string]string{"type": eventType, "content-type": "application/json"}
}

// outcome is the result of an append or a deletion. If it was refused, last is nil.
type outcome struct {
	deleted  bool
	repeated bool // it had been applied before
	last     *record
	current  int64 // revision of the stream, -1 if it does not exist
}

// append adds events as the real server does: an append whose ids stand right after the expected revision, or, where no
// revision is expected, anywhere in the stream, has been applied before and succeeds again.
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
	after := current // the revision that the first event comes after
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

// holds reports whether the events stand in the stream right after a revision, in that order.
func (s *stream) holds(after int64, list []proposed) bool {
	for i, p := range list {
		at := after + 1 + int64(i)
		if at >= int64(len(s.records)) || s.records[at].id != p.id {
			return false
		}
	}
	return true
}

// delete hides what is in a stream, or ends it for good.
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

// all returns the log and a channel that is closed when it has grown.
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
