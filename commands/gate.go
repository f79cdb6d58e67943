package commands

import (
	"context"
	"sync"
	"time"
)

// gate lets a limited number of holders of a key in at once; the others wait in the order in which they came. It remembers only keys in use.
type gate struct {
	limit int
	// rest is for how many times as long as a holder was in its place stays empty, for maxGateRest at most, if others wait for the key.
	rest int

	mu   sync.Mutex
	keys map[string]*slots
}

type slots struct {
	taken chan struct{}
	users int // who hold one or wait
}

// maxGateRest is the longest that a place stays empty while others wait.
const maxGateRest = 20 * time.Millisecond

func newGate(limit int) *gate { return &gate{limit: limit, keys: map[string]*slots{}} }

// newRestingGate is a gate for one holder of a key at once, whose place then rests.
func newRestingGate(rest int) *gate {
	g := newGate(1)
	g.rest = rest
	return g
}

// enter waits for a slot. Its error is that of ctx, which ended before.
func (g *gate) enter(ctx context.Context, key string) (leave func(), err error) {
	return g.enterAside(ctx, key, nil)
}

// enterAside is enter, which calls pause, unless that is nil, before it waits, and resume once it has the slot. The error may be that of resume.
func (g *gate) enterAside(ctx context.Context, key string, pause func() (resume func(context.Context) error)) (leave func(), err error) {
	g.mu.Lock()
	s := g.keys[key]
	if s == nil {
		s = &slots{taken: make(chan struct{}, g.limit)}
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
