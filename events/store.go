// Package events defines the facts that flagledger records, how they are encoded, and the Store interface that engines
// implement.
package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
)

// Store stores facts in streams and delivers all of them, in one order, to subscribers. Every engine passes the tests
// in eventstest.
type Store interface {
	// Append adds events to the end of a stream, all or none, and returns once they are on disk. The error is ErrConflict
	// if the stream is not at the expected revision (0: it must not exist), ErrTooLarge for events over MaxEventBytes,
	// and ErrAhead for a copied event from the future.
	//
	// It is idempotent, and may be repeated after ErrUnavailable, when its outcome is unknown: if events with the same ids
	// already follow the expected revision, it changes nothing and succeeds.
	Append(ctx context.Context, stream string, expected Revision, batch []Event) (Appended, error)

	// Read yields the events of a stream in order, from a revision on (0 and 1 both mean the first event), and ends after
	// the first error. A stream that does not exist has no events.
	Read(ctx context.Context, stream string, from Revision) iter.Seq2[Recorded, error]

	// Find returns the revision of the event with an id in a stream, 0 if there is none. It decodes no event.
	Find(ctx context.Context, stream string, id uuid.UUID) (Revision, error)

	// Subscribe yields all events after a position and then new ones as they are appended, page by page, in order, each
	// exactly once; it reconnects by itself. With the first Live page, everything that was appended before the call has
	// been delivered.
	//
	// It ends with an error when ctx ends or the log cannot be read: ErrPastEnd if the position is past the end of the
	// log.
	Subscribe(ctx context.Context, after Position) iter.Seq2[Page, error]

	// Head returns the position of the last event, or the zero Position if there is none.
	Head(ctx context.Context) (Position, error)

	// Watermark returns a time that the log has passed, in UTC and whole microseconds: every event recorded before it can
	// be read, and later appends are not recorded before it, except copied events. An engine documents if its clock
	// cannot promise that. If possible the time is after at; for that it waits for pending appends.
	Watermark(ctx context.Context, at time.Time) (time.Time, error)

	// Clock returns the time by the store's clock, and the time at which the last event was recorded; zero if there is
	// none.
	Clock(ctx context.Context) (now, last time.Time, err error)

	// Log identifies the log. It reads a few events at most, except the first time, when an engine may have to search for
	// the first event.
	Log(ctx context.Context) (Log, error)

	// Engine returns the name of the engine. Positions of different engines cannot be compared.
	Engine() string
}

var (
	// ErrConflict says that a stream is not at the revision that an append expected.
	ErrConflict = errors.New("stream is at another revision")
	// ErrUnavailable says that the store could not be reached or did not answer. An append may or may not have been made.
	ErrUnavailable = errors.New("event store is unavailable")
	// ErrDiskFull says that the store has no room on its disk. It comes with ErrUnavailable.
	ErrDiskFull = errors.New("the disk of the event store is full")
	// ErrPastEnd says that a position is past the end of the log: it was taken from another one, or before a restore.
	ErrPastEnd = errors.New("the position is past the end of the log")
	// ErrAhead says that a copied event is recorded more than MaxAhead later than the store's clock, and later than
	// AcceptUntil.
	ErrAhead = errors.New("the recorded time is more than 5 minutes later than the store's clock")
	// ErrTooLarge says that an event exceeds MaxEventBytes.
	ErrTooLarge = fmt.Errorf("event is larger than %d bytes", MaxEventBytes)
)

// GapError says that events are gone from a log whose positions have no gaps. All events before the gap are delivered
// ahead of it.
type GapError struct{ First, Last uint64 } // the positions that are missing

func (e *GapError) Error() string {
	return fmt.Sprintf("the log has a gap: position %d comes after %d", e.Last+1, e.First-1)
}

// MaxEventBytes is the limit for one event's data and metadata together. It is EventStoreDB's limit; every engine
// enforces it.
const MaxEventBytes = 1 << 20

// Revision is the number of an event in its stream, from 1. A stream's revision is that of its last event, or 0 if it
// has none.
type Revision uint64

// Position is the place of an event in the whole log, as EventStoreDB counts it. The zero Position is before the first
// event.
type Position struct {
	Commit  uint64
	Prepare uint64
}

// Compare returns -1, 0 or 1 if p is before, at or after q.
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

// MaxAhead is how much later than the store's clock the recorded time of a copied event may be. The clocks of two
// stores never agree wholly.
const MaxAhead = 5 * time.Minute

// Appended is the end of an append, with the time at which the store recorded each event.
type Appended struct {
	Position Position    // of the last event
	Recorded []time.Time // one for each event
}

// Event is a fact that is to be appended.
type Event struct {
	ID uuid.UUID
	Metadata
	Fact Fact
}

// Metadata is what every event has beside its fact.
type Metadata struct {
	Time          time.Time `json:"time"` // UTC, whole milliseconds
	Actor         Actor     `json:"actor"`
	RequestID     string    `json:"requestId,omitempty"`
	CorrelationID string    `json:"correlationId,omitempty"`
	Reason        string    `json:"reason,omitempty"` // the caller's own words for the change
}

// ActorKind is the kind of an actor.
type ActorKind string

// The kinds of actors.
const (
	UserActor   ActorKind = "user"
	ClientActor ActorKind = "client"
	SystemActor ActorKind = "system"
	// InvitedActor is a person who declined a tenant's invitation. The id is the invitation's: the tenant does not know
	// the person.
	InvitedActor ActorKind = "invited"
)

// Actor is who caused an event. It never holds a name or an address.
type Actor struct {
	Kind ActorKind `json:"kind"`
	ID   string    `json:"id"`
}

// Recorded is an event that was read from the store. If its bytes could not be decoded, Err is set and Fact is nil.
type Recorded struct {
	Event
	Position Position
	Stream   string
	Revision Revision
	// when the store recorded it: UTC, whole microseconds; an event that was copied keeps the time of the store that it
	// came from
	At     time.Time
	Name   string // the stored name of the fact
	Stored Stored // as it is stored, for copies
	Err    error
}

// Page is a run of consecutive events.
type Page struct {
	Events []Recorded
	Next   Position // subscribe from here to continue after this page
	Live   bool     // nothing more was in the log when the page was read
}
