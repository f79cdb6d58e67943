package commands

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"

	"flagledger/events"
)

// maxStates bounds what a Writer keeps of streams, in bytes, as State's size counts them.
const maxStates = 64 << 20

// entryBytes is about what the cache needs for an entry beside the state itself.
const entryBytes = 512

// mark is the event that a state took in last; the zero mark is before the first.
type mark struct {
	id       uuid.UUID
	revision events.Revision
	position events.Position
	name     string
}

func markOf(r events.Recorded) mark { return mark{r.ID, r.Revision, r.Position, r.Name} }

// keptState is the state of a stream as of an event. It is shared, so nothing changes it: what comes after is taken in
// by a clone.
type keptState struct {
	state any // an S
	last  mark
	size  uint32
}

// states keeps the states of the streams that were used last.
type states = otter.Cache[string, keptState]

func newStates(bytes uint64) *states {
	return otter.Must(&otter.Options[string, keptState]{
		MaximumWeight: bytes,
		Weigher:       func(_ string, s keptState) uint32 { return s.size },
	})
}

// keep keeps a state, which nothing changes from then on.
func keep[S any, P State[S]](w *Writer, stream string, s S, last mark) {
	if w.states != nil && last.revision > 0 {
		w.states.Set(stream, keptState{s, last, uint32(min(P(&s).size()+len(stream)+entryBytes, math.MaxUint32))})
	}
}

// kept is the state of a stream as of the event that this node read or appended last; false where none is kept.
func kept[S any](w *Writer, stream string) (s S, last mark, ok bool) {
	if w.states == nil {
		return s, last, false
	}
	k, ok := w.states.GetIfPresent(stream)
	if !ok {
		return s, last, false
	}
	s, ok = k.state.(S)
	return s, k.last, ok
}

// load is the state of a stream as it is now. It reads on from the state that is kept, or from the beginning if the log
// has another event there. Its errors are *Error.
//
// If reading breaks off, what was read is kept, so that several commands can fold a stream that takes longer than one
// may.
func load[S any, P State[S]](
	ctx context.Context, w *Writer, retry *storeRetry, stream, tenant string,
) (s S, last mark, err error) {
	for {
		s, last, err = catchUp[S, P](ctx, w, stream, tenant)
		if err == nil {
			return s, last, nil
		}
		if !retry.wait(ctx, err) {
			return s, last, unavailable(err)
		}
	}
}

func catchUp[S any, P State[S]](ctx context.Context, w *Writer, stream, tenant string) (S, mark, error) {
	s, last, ok := kept[S](w, stream)
	if !ok {
		leave, err := w.enterFold(ctx, tenant, stream)
		if err != nil {
			return s, last, err
		}
		if s, last, ok = kept[S](w, stream); !ok { // nobody else has read it meanwhile
			defer leave()
			s, last, _, err := fold[S, P](ctx, w, stream, nil)
			return s, last, err
		}
		leave()
	}
	from, same, changed := last, false, false
	for r, err := range w.store.Read(ctx, stream, from.revision) {
		if err != nil {
			if changed {
				keep[S, P](w, stream, s, last)
			}
			return s, last, err
		}
		if !same {
			if same = r.ID == from.id && r.Revision == from.revision; !same {
				break
			}
			continue
		}
		if err := checkDecoded(r); err != nil {
			return s, last, err
		}
		if !changed {
			s, changed = P(&s).clone(), true
		}
		P(&s).evolve(r)
		last = markOf(r)
	}
	if !same {
		w.states.Invalidate(stream)
		return catchUp[S, P](ctx, w, stream, tenant)
	}
	if changed {
		keep[S, P](w, stream, s, last)
	}
	return s, last, nil
}

// search is load for a request that may have been made before. Where the stream holds events with the ids of the
// request, found is true and the state is the one that the last of these left.
func search[S any, P State[S]](
	ctx context.Context, w *Writer, retry *storeRetry, stream, tenant string, ids func(i int) uuid.UUID,
) (s S, last mark, found bool, err error) {
	for {
		s, last, found, err = loadOrFind[S, P](ctx, w, stream, tenant, ids)
		if err == nil {
			return s, last, found, nil
		}
		if !retry.wait(ctx, err) {
			return s, last, false, unavailable(err)
		}
	}
}

// loadOrFind looks for the request's events once the state is known: an earlier attempt that appends after that makes a
// conflict of what is decided from the state.
func loadOrFind[S any, P State[S]](
	ctx context.Context, w *Writer, stream, tenant string, ids func(i int) uuid.UUID,
) (s S, last mark, found bool, err error) {
	if s, last, err = catchUp[S, P](ctx, w, stream, tenant); err != nil {
		return s, last, false, err
	}
	leave, err := w.enterFold(ctx, tenant, stream)
	if err != nil {
		return s, last, false, err
	}
	defer leave()
	first, err := w.store.Find(ctx, stream, ids(0))
	switch {
	case err != nil || first == 0:
		return s, last, false, err
	case first <= last.revision && last.id == ids(int(last.revision-first)):
		return s, last, true, nil
	}
	return fold[S, P](ctx, w, stream, ids)
}

// fold folds a stream from its first event, and keeps the state, also that of a part, unless it stops at the events
// with the given ids.
func fold[S any, P State[S]](
	ctx context.Context, w *Writer, stream string, ids func(i int) uuid.UUID,
) (s S, last mark, found bool, err error) {
	own := 0
	for r, err := range w.store.Read(ctx, stream, 0) {
		if err != nil {
			if ids == nil {
				keep[S, P](w, stream, s, last)
			}
			return s, last, false, err
		}
		if ids != nil && r.ID == ids(own) {
			own++
		} else if own > 0 {
			return s, last, true, nil
		}
		if err := checkDecoded(r); err != nil {
			return s, last, false, err
		}
		P(&s).evolve(r)
		last = markOf(r)
	}
	keep[S, P](w, stream, s, last)
	return s, last, own > 0, nil
}

// checkDecoded is why no state can take in an event, nil where one can.
func checkDecoded(r events.Recorded) error {
	err := r.Err
	if kind, _, _ := strings.Cut(r.Name, "."); err == nil && !strings.HasPrefix(r.Stream, kind+"-") {
		err = fmt.Errorf("%s is no fact of such a stream", r.Name)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s@%d: %w", r.Stream, r.Revision, err)
}
