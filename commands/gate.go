package commands

import (
	"context"
	"sync"
	"time"
)

// gate is a semaphore for each key: a key has so many slots, and who finds none free waits, in the order of arrival. It
// remembers only keys in use.
type gate struct {
	limit int // of slots of a key
	// rest keeps a slot free for so many times as long as it was held, though for no longer than maxGateRest, if others
	// wait for the key.
	rest int

	mu   sync.Mutex
	keys map[string]*keyState
}

// keyState is a key that is in use.
type keyState struct {
	taken chan struct{} // has an element for each slot that is held
	users int           // who hold a slot or wait
}

// maxGateRest is the longest that a slot stays free while others wait.
const maxGateRest = 20 * time.Millisecond

func newGate(limit int) *gate { return &gate{limit: limit, keys: map[string]*keyState{}} }

// newRestingGate is a gate with one slot for a key, which then rests.
func newRestingGate(rest int) *gate {
	g := newGate(1)
	g.rest = rest
	return g
}

// enter waits for a slot. Its error is that of ctx, which ended before.
func (g *gate) enter(ctx context.Context, key string) (leave func(), err error) {
	return g.enterPausing(ctx, key, nil)
}

// enterPausing is enter with what is to be paused meanwhile: it calls pause, unless that is nil, before it waits, and
// resume once it has the slot. The error may be that of resume.
func (g *gate) enterPausing(
	ctx context.Context, key string, pause func() (resume func(context.Context) error),
) (leave func(), err error) {
	g.mu.Lock()
	s := g.keys[key]
	if s == nil {
		s = &keyState{taken: make(chan struct{}, g.limit)}
		g.keys[key] = s
	}
	s.users++
	g.mu.Unlock()
	forget := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(g.keys, key)
		}
	}
	var began time.Time
	leave = func() {
		free := func() {
			<-s.taken
			forget()
		}
		g.mu.Lock()
		wanted := s.users > 1
		g.mu.Unlock()
		if rest := min(time.Duration(g.rest)*time.Since(began), maxGateRest); wanted && rest > 0 {
			time.AfterFunc(rest, free)
			return
		}
		free()
	}
	resume := func(context.Context) error { return nil }
	select {
	case s.taken <- struct{}{}:
		began = time.Now()
		return leave, nil
	default:
		if pause != nil {
			resume = pause()
		}
	}
	select {
	case s.taken <- struct{}{}:
		began = time.Now()
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
	if err := resume(ctx); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}
