package commands

import (
	"context"
	"sync"
)

// gate lets a limited number of holders of a key in at once; the others wait in the order in which they came. It remembers only keys in use.
type gate struct {
	limit int

	mu   sync.Mutex
	keys map[string]*slots
}

type slots struct {
	taken chan struct{}
	users int // who hold one or wait
}

func newGate(limit int) *gate { return &gate{limit: limit, keys: map[string]*slots{}} }

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
	leave = func() {
		<-s.taken
		forget()
	}
	resume := func(context.Context) error { return nil }
	select {
	case s.taken <- struct{}{}:
		return leave, nil
	default:
		if pause != nil {
			resume = pause()
		}
	}
	select {
	case s.taken <- struct{}{}:
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
