package quota

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// roundTime is how long a round collects attempts.
	roundTime = 3 * time.Second
	// roundDrawn is the maximum number of attempts that a round admits.
	roundDrawn = 3
)

// rounds slow down attempts by key. At the end of a round some of the waiting attempts are drawn at random, so that an
// attacker cannot displace others by coming first. A single attempt is always drawn.
type rounds struct {
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*round
}

type round struct {
	attempts int
	first    int           // index of the first drawn; the next ones follow, wrapping around
	ended    chan struct{} // closed once first is set
}

func newRounds() *rounds { return &rounds{byKey: map[[sha256.Size]byte]*round{}} }

// wait waits for the end of a round and reports whether the attempt was drawn. Its error is ctx's.
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
	r.first = rand.IntN(r.attempts) //nolint:gosec // the draw needs no secrecy
	close(r.ended)
}
