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
	select {
	case s.taken <- struct{}{}:
		return func() {
			<-s.taken
			forget()
		}, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}
