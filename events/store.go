// Package events holds the facts that flagledger records, how they are stored, and the port to the store that keeps them.
package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
)

// Store keeps facts in streams and delivers all of them, in one order, to its subscribers. Every engine passes the suite in eventstest.
type Store interface {
	// Append adds a batch of events to the end of a stream, all or none, and returns the position of the last one once it is on disk.
	//
	// The stream must stand at the expected revision (0: it must not exist), else ErrConflict. An append whose event ids already stand
	// in the stream right after the expected revision has been applied before: it changes nothing and succeeds. So after
	// ErrUnavailable, whose outcome is unknown, the same call is safe to repeat. A too large event is refused with ErrTooLarge.
	Append(ctx context.Context, stream string, expected Revision, batch []Event) (Position, error)

	// Read yields the events of a stream in order, beginning with the given revision (0 and 1 both mean the first). A stream that does
	// not exist yields nothing. It ends after the first error.
	Read(ctx context.Context, stream string, from Revision) iter.Seq2[Recorded, error]

	// Subscribe yields all events after a position, in order, each exactly once, page by page, and goes on with new ones as they are
	// appended. It reconnects by itself. The first Live page says that everything appended before the call has been delivered. It ends with
	// an error when ctx ends or the log cannot be read.
	Subscribe(ctx context.Context, after Position) iter.Seq2[Page, error]

	// Head returns the position of the last event, the zero Position if there is none.
	Head(ctx context.Context) (Position, error)

	// Engine names the kind of store. A Position has a meaning only within its engine.
	Engine() string
}

var (
	// ErrConflict says that a stream does not stand at the revision that an append expected.
	ErrConflict = errors.New("stream is at another revision")
	// ErrUnavailable says that the store could not be reached, or went away before it answered: an append may or may not have been applied.
	ErrUnavailable = errors.New("event store is unavailable")
	// ErrTooLarge says that an event exceeds MaxEventBytes.
	ErrTooLarge = fmt.Errorf("event is larger than %d bytes", MaxEventBytes)
)

// MaxEventBytes is the largest size of one event's data and metadata together. It is EventStoreDB's limit, held by every engine.
const MaxEventBytes = 1 << 20

// Revision is the number of an event in its stream, from 1; as a stream's revision, that of its last event; 0 is a stream without events.
type Revision uint64

// Position is the place of an event in the whole log, as EventStoreDB counts it. The zero Position stands before the first event.
type Position struct {
	Commit  uint64
	Prepare uint64
}

// Compare returns -1, 0 or 1 as p stands before, at or after q.
func (p Position) Compare(q Position) int {
	switch {
	case p.Commit < q.Commit || p.Commit == q.Commit && p.Prepare < q.Prepare:
		return -1
	case p == q:
		return 0
	default:
		return 1
	}
}

func (p Position) String() string { return fmt.Sprintf("%d/%d", p.Commit, p.Prepare) }

// Event is a fact on its way into the store.
type Event struct {
	ID uuid.UUID
	Metadata
	Fact Fact
}

// Metadata is what is known of every event beside its fact.
type Metadata struct {
	Time          time.Time `json:"time"` // UTC, whole milliseconds
	Actor         Actor     `json:"actor"`
	RequestID     string    `json:"requestId,omitempty"`
	CorrelationID string    `json:"correlationId,omitempty"`
	Reason        string    `json:"reason,omitempty"` // the caller's own words for the change
}

// ActorKind says what kind of principal caused an event.
type ActorKind string

// The kinds of actors.
const (
	UserActor   ActorKind = "user"
	ClientActor ActorKind = "client"
	SystemActor ActorKind = "system"
)

// Actor is who caused an event. Names and addresses are never part of it.
type Actor struct {
	Kind ActorKind `json:"kind"`
	ID   string    `json:"id"`
}

// Recorded is an event as the store keeps it. Err is set, and Fact nil, where the stored bytes could not be decoded; subscribers decide what
// becomes of such a stream.
type Recorded struct {
	Event
	Position Position
	Stream   string
	Revision Revision
	Name     string // the stored name of the fact
	Stored   Stored // as it is kept, for whoever copies it
	Err      error
}

// Page is a run of consecutive events.
type Page struct {
	Events []Recorded
	Next   Position // where to subscribe again to continue after this page
	Live   bool     // nothing more was in the log when the page was read
}
