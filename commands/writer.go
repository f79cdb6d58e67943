// Package commands decides what may happen: a command names a stream and turns what is known of it into facts, or refuses.
package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// Command is a decision about one stream with the state S. Deciding is pure: time and new ids are fields of the command.
type Command[S any] interface {
	stream() string
	decide(state S) ([]events.Fact, error)
}

// State is what a command decides from. evolve takes in one event and never fails: what happened, happened.
type State[S any] interface {
	*S
	evolve(events.Recorded)
}

// Writer carries out commands on a store.
type Writer struct {
	Store events.Store
	// Await waits until what shows facts of the given stored names, the snapshot of this node and some read models, holds a position. A name may
	// be the beginning of several, such as "flag.". It returns false where that takes too long.
	Await func(ctx context.Context, position events.Position, names []string) bool
}

// By says on whose behalf a command runs, and for which request. It becomes the metadata of its events.
type By struct {
	Actor         events.Actor
	RequestID     string
	CorrelationID string
	Reason        string
	Once          *Once // nil where the request is not repeated
}

// Done tells what became of a command.
type Done struct {
	Position events.Position // of its last event; zero where there was nothing to do
	Async    bool            // the read models do not show it yet
	Repeated bool            // the request had done it already when it was made before
}

const (
	writeTimeout = 5 * time.Second
	// outageTimeout is how long a command goes on trying after the store was first found to be gone: long enough for a lost connection, short
	// enough to answer within a second.
	outageTimeout = 700 * time.Millisecond
	firstRetry    = 10 * time.Millisecond
	maxRetry      = 100 * time.Millisecond
)

// Do carries out a command and returns the state that it leaves. It reads the stream, decides, appends, and waits until the change can be
// read; where there is nothing to do, or the command is refused, until what made it so can be read, which another caller may have done just
// now. A lost race is decided again; an append of unknown outcome is repeated, which applies it once. Where the request has been made before
// and the command was carried out then, nothing is decided: the state is the one that it left. Its errors are *Error.
func Do[S any, P State[S]](ctx context.Context, w *Writer, by By, cmd Command[S]) (S, Done, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var retry retry
	ids := by.Once.eventIDs(cmd.stream(), typeName(cmd))
	for {
		s, last, done, err := load[S, P](ctx, w, &retry, cmd.stream(), ids)
		if err != nil {
			return s, Done{}, err
		}
		if done {
			return s, Done{Position: last.Position, Async: !w.awaitLast(ctx, last), Repeated: true}, nil
		}
		facts, err := cmd.decide(s)
		if err != nil || len(facts) == 0 {
			return s, Done{Async: !w.awaitLast(ctx, last)}, err
		}
		batch := make([]events.Event, len(facts))
		for i, fact := range facts {
			id := uuid.Must(uuid.NewV7())
			if ids != nil {
				id = ids(i)
			}
			batch[i] = events.Event{
				ID:       id,
				Metadata: events.Metadata{Time: now, Actor: by.Actor, RequestID: by.RequestID, CorrelationID: by.CorrelationID, Reason: by.Reason},
				Fact:     fact,
			}
		}
		position, err := w.Store.Append(ctx, cmd.stream(), last.Revision, batch)
		for err != nil && retry.wait(ctx, err) {
			position, err = w.Store.Append(ctx, cmd.stream(), last.Revision, batch)
		}
		switch {
		case errors.Is(err, events.ErrConflict):
			continue
		case errors.Is(err, events.ErrTooLarge):
			wrong := fields{}
			wrong.check(false, "body", "the change is too large: it may take %d bytes", events.MaxEventBytes)
			return s, Done{}, wrong.err()
		case err != nil:
			return s, Done{}, unavailable(err)
		}
		names := make([]string, len(batch))
		for i, e := range batch {
			names[i] = e.Fact.StoredName()
			P(&s).evolve(events.Recorded{Event: e, Stream: cmd.stream(), Revision: last.Revision + events.Revision(i) + 1, Name: names[i]})
		}
		return s, Done{Position: position, Async: !w.Await(ctx, position, names)}, nil
	}
}

// Check decides a command as Do would, and appends nothing: it returns the state as it is, and why the command would be refused. Nothing is refused
// that the request has done before. Where it is refused, it waits as Do does. Its errors are *Error.
func Check[S any, P State[S]](ctx context.Context, w *Writer, by By, cmd Command[S]) (S, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	s, last, done, err := load[S, P](ctx, w, &retry{}, cmd.stream(), by.Once.peekEventIDs(cmd.stream(), typeName(cmd)))
	if err != nil || done {
		return s, err
	}
	if _, err = cmd.decide(s); err != nil {
		w.awaitLast(ctx, last)
	}
	return s, err
}

// Find looks for what the request did with a command when it was made before, and changes nothing: what Do would return without deciding. It reports
// false where the request did nothing then, or bears no Idempotency-Key. Its errors are *Error.
func Find[S any, P State[S]](ctx context.Context, w *Writer, by By, cmd Command[S]) (s S, done Done, found bool, err error) {
	if by.Once == nil {
		return s, Done{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	s, last, found, err := load[S, P](ctx, w, &retry{}, cmd.stream(), by.Once.peekEventIDs(cmd.stream(), typeName(cmd)))
	if err != nil || !found {
		return s, Done{}, false, err
	}
	return s, Done{Position: last.Position, Async: !w.awaitLast(ctx, last), Repeated: true}, true, nil
}

// awaitLast waits until all that a stream holds up to its last event can be read, of whichever facts it consists.
func (w *Writer) awaitLast(ctx context.Context, last events.Recorded) bool {
	if last.Revision == 0 {
		return true
	}
	kind, _, _ := strings.Cut(last.Name, ".")
	return w.Await(ctx, last.Position, []string{kind + "."})
}

func typeName(cmd any) string { return fmt.Sprintf("%T", cmd) }

// load folds a stream, and tries again while the store cannot be reached. last is its last event, the zero Recorded where it has none. Where the stream
// holds events with the given ids, it is folded no further than the last of these, and done is true. Its errors are *Error.
func load[S any, P State[S]](ctx context.Context, w *Writer, retry *retry, stream string, ids func(i int) uuid.UUID) (s S, last events.Recorded, done bool, err error) {
	for {
		s, last, done, err = fold[S, P](ctx, w.Store, stream, ids)
		if err == nil {
			return s, last, done, nil
		}
		if !retry.wait(ctx, err) {
			return s, last, false, unavailable(err)
		}
	}
}

func fold[S any, P State[S]](ctx context.Context, store events.Store, stream string, ids func(i int) uuid.UUID) (s S, last events.Recorded, done bool, err error) {
	own := 0
	for r, err := range store.Read(ctx, stream, 0) {
		if err != nil {
			return s, last, false, err
		}
		if ids != nil && r.ID == ids(own) {
			own++
		} else if own > 0 {
			break
		}
		if r.Err != nil {
			return s, last, false, fmt.Errorf("stream %s@%d: %w", stream, r.Revision, r.Err)
		}
		P(&s).evolve(r)
		last = r
	}
	return s, last, own > 0, nil
}

// retry bounds how long a command goes on trying to reach a store. The zero retry has not failed yet.
type retry struct {
	delay    time.Duration
	deadline time.Time
}

// wait waits before the next attempt, and reports whether there is one: err is ErrUnavailable and the time is not over.
func (r *retry) wait(ctx context.Context, err error) bool {
	if !errors.Is(err, events.ErrUnavailable) {
		return false
	}
	if r.deadline.IsZero() {
		r.delay, r.deadline = firstRetry, time.Now().Add(outageTimeout)
	}
	if time.Now().Add(r.delay).After(r.deadline) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(r.delay):
	}
	r.delay = min(2*r.delay, maxRetry)
	return true
}

func unavailable(err error) error {
	if errors.Is(err, events.ErrUnavailable) {
		return &Error{Kind: Unavailable, Detail: "the event store cannot be reached; the change may or may not have been made", Err: err}
	}
	return err
}
