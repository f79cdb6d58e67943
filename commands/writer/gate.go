package writer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"flagledger/commands"
)

// gate is a semaphore for each key. Callers wait for a slot in the order of arrival. It remembers only keys in use.
type gate struct {
	limit int // of slots of a key
	// cooldown keeps a slot free after it was held, for a multiple of that time, if others wait for the key.
	cooldown int

	mu   sync.Mutex
	keys map[string]*keyState
}

// keyState is a key that is in use.
type keyState struct {
	taken chan struct{} // has an element for each slot that is held
	users int           // who hold a slot or wait
}

// maxGateCooldown limits how long a slot stays free while others wait.
const maxGateCooldown = 20 * time.Millisecond

func newGate(limit int) *gate { return &gate{limit: limit, keys: map[string]*keyState{}} }

// newCooldownGate returns a gate with one slot for a key, which cools down.
func newCooldownGate(cooldown int) *gate {
	g := newGate(1)
	g.cooldown = cooldown
	return g
}

// enter waits for a slot. Its error is ctx's.
func (g *gate) enter(ctx context.Context, key string) (leave func(), err error) {
	return g.enterYielding(ctx, key, nil)
}

// enterYielding is enter that releases the caller's other slot while it waits: it calls pause, unless that is nil,
// before it waits, and resume once it has the slot. The error may be that of resume.
func (g *gate) enterYielding(
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
		if wait := min(time.Duration(g.cooldown)*time.Since(began), maxGateCooldown); wanted && wait > 0 {
			time.AfterFunc(wait, free)
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

// errBusy returns the refusal after waiting for writeTimeout. atOnce is the concurrency limit.
func errBusy(atOnce int, others string) error {
	return &commands.Error{
		Kind:   commands.TooMany,
		Detail: fmt.Sprintf("%s; this one waited for %v and was not made", others, writeTimeout),
		AtOnce: atOnce,
	}
}
