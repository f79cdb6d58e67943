package limit

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// roundTime is how long a round gathers attempts.
	roundTime = 3 * time.Second
	// roundDrawn is how many attempts of a round are drawn at most.
	roundDrawn = 3
)

// rounds slow attempts by key. An attempt waits to the end of its round, when some are drawn at random among those that
// wait: nobody can take the places of others by coming first, and who is alone is always drawn.
type rounds struct {
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*round
}

type round struct {
	attempts int
	first    int           // of those drawn, which follow one another; the first attempt comes after the last
	ended    chan struct{} // closed once first is set
}

func newRounds() *rounds { return &rounds{byKey: map[[sha256.Size]byte]*round{}} }

// wait waits to the end of a round and reports whether the attempt was drawn. Its error is that of ctx.
func (rs *rounds) wait(ctx context.Context, key [sha256.Size]byte) (drawn bool, err error) {
	rs.mu.Lock()
	r, ok := rs.byKey[key]
	if !ok {
		r = &round{ended: make(chan struct{})}
		rs.byKey[key] = r
		time.AfterFunc(roundTime, func() { rs.end(key, r) })
	}
	number := r.attempts
	r.attempts++
	rs.mu.Unlock()
	select {
	case <-r.ended:
		return (number-r.first+r.attempts)%r.attempts < roundDrawn, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (rs *rounds) end(key [sha256.Size]byte, r *round) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.byKey, key)
	r.first = rand.IntN(r.attempts) //nolint:gosec // who is drawn is no secret
	close(r.ended)
}
