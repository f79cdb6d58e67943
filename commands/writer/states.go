package writer

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"

	"flagledger/events"
	"flagledger/events/state"
)

// maxStates limits the cached states of a Writer in bytes, as State.size counts them.
const maxStates = 64 << 20

// entryBytes is the approximate overhead of a cache entry.
const entryBytes = 512

// lastEvent identifies the last event of a state; the zero value is before the first event.
type lastEvent struct {
	id       uuid.UUID
	revision events.Revision
	position events.Position
	name     string
}

func lastEventOf(r events.Recorded) lastEvent { return lastEvent{r.ID, r.Revision, r.Position, r.Name} }

// cachedState is the state of a stream as of an event. It is shared and must not be changed: later events are applied
// to a clone.
type cachedState struct {
	state any // an S
	last  lastEvent
	size  uint32
}

// states caches the states of recently used streams.
type states = otter.Cache[string, cachedState]

func newStates(bytes uint64) *states {
	return otter.Must(&otter.Options[string, cachedState]{
		MaximumWeight: bytes,
		Weigher:       func(_ string, s cachedState) uint32 { return s.size },
	})
}

// cacheState caches a state, which must not be changed afterwards.
func cacheState[S any, P state.State[S]](w *Writer, stream string, s S, last lastEvent) {
	if w.states != nil && last.revision > 0 {
		w.states.Set(stream, cachedState{s, last, uint32(min(P(&s).Size()+len(stream)+entryBytes, math.MaxUint32))})
	}
}

// fromCache returns the cached state of a stream, as of the last event that this node read or appended; ok is false
// without one.
func fromCache[S any](w *Writer, stream string) (s S, last lastEvent, ok bool) {
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

// load returns the current state of a stream. It reads on from the cached state, or from the beginning if the log has
// a different event there. Errors are *commands.Error.
//
// A partial read is cached, so that several commands together can fold a stream that takes too long for one.
func load[S any, P state.State[S]](
	ctx context.Context, w *Writer, retry *storeRetry, stream, tenant string,
) (s S, last lastEvent, err error) {
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

func catchUp[S any, P state.State[S]](ctx context.Context, w *Writer, stream, tenant string) (S, lastEvent, error) {
	s, last, ok := fromCache[S](w, stream)
	if !ok {
		leave, err := w.enterFold(ctx, tenant, stream)
		if err != nil {
			return s, last, err
		}
		if s, last, ok = fromCache[S](w, stream); !ok { // no other command has read it meanwhile
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
				cacheState[S, P](w, stream, s, last)
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
			s, changed = P(&s).Clone(), true
		}
		P(&s).Apply(r)
		last = lastEventOf(r)
	}
	if !same {
		w.states.Invalidate(stream)
		return catchUp[S, P](ctx, w, stream, tenant)
	}
	if changed {
		cacheState[S, P](w, stream, s, last)
	}
	return s, last, nil
}

// search works like load for a request that may be a retry. If the stream has events with the request's ids, found is
// true and the state is as of the last of them.
func search[S any, P state.State[S]](
	ctx context.Context, w *Writer, retry *storeRetry, stream, tenant string, ids func(i int) uuid.UUID,
) (s S, last lastEvent, found bool, err error) {
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

// loadOrFind searches for the request's events after loading: a concurrent first attempt then fails our append with
// ErrConflict.
func loadOrFind[S any, P state.State[S]](
	ctx context.Context, w *Writer, stream, tenant string, ids func(i int) uuid.UUID,
) (s S, last lastEvent, found bool, err error) {
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

// fold folds a stream from its first event, and caches the state, even a partial one, unless it stops at events with
// the given ids.
func fold[S any, P state.State[S]](
	ctx context.Context, w *Writer, stream string, ids func(i int) uuid.UUID,
) (s S, last lastEvent, found bool, err error) {
	own := 0
	for r, err := range w.store.Read(ctx, stream, 0) {
		if err != nil {
			if ids == nil {
				cacheState[S, P](w, stream, s, last)
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
		P(&s).Apply(r)
		last = lastEventOf(r)
	}
	cacheState[S, P](w, stream, s, last)
	return s, last, own > 0, nil
}

// checkDecoded returns why an event cannot be applied to any state, or nil.
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
