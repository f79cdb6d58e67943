package snapshot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"flagledger/projections/snapshot/evaluation"
)

// FlagProblem is a problem of a flag in an environment.
type FlagProblem struct {
	evaluation.Problem
	Environment string // its name
}

// FlagProblems returns what is wrong with the segments and the flags that a flag leads to.
func (t *Tenant) FlagProblems(key string) (problems []FlagProblem) {
	f, d, ok := t.FlagWithDependencies(key)
	if !ok || len(f.dependencies()) == 0 {
		return nil
	}
	for _, e := range t.Environments() {
		for _, p := range d.Problems(&f.Flag, e.ID) {
			problems = append(problems, FlagProblem{p, e.Name})
		}
	}
	return problems
}

// BrokenFlags counts the flags with problems. It may lag behind changes.
func (s *Snapshot) BrokenFlags() int { return int(s.broken.count.Load()) }

// brokenFlags counts the flags with problems. Its goroutine recounts the tenants that changes have marked, as that may
// take long, and the log must not wait for it.
type brokenFlags struct {
	count atomic.Int64

	mu     sync.Mutex
	marked map[*Tenant]bool
	more   chan struct{} // buffered for one signal
}

// recountRest is the ratio of rests to recounting: it takes a tenth of one core at most.
const recountRest = 10

// mark has a tenant recounted.
func (b *brokenFlags) mark(t *Tenant) {
	b.mu.Lock()
	b.marked[t] = true
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default: // it is signalled already
	}
}

// take returns the marked tenants, and marks none.
func (b *brokenFlags) take() map[*Tenant]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.marked
	b.marked = map[*Tenant]bool{}
	return taken
}

// countBroken recounts marked tenants until ctx ends.
func (s *Snapshot) countBroken(ctx context.Context) {
	counts := map[*Tenant]int{}
	for {
		select {
		case <-s.broken.more:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		for t := range s.broken.take() {
			n := 0
			if existing, ok := s.tenants.Load(t.id); ok && existing == t {
				n = t.brokenFlags(ctx)
			}
			s.broken.count.Add(int64(n - counts[t]))
			if counts[t] = n; n == 0 {
				delete(counts, t)
			}
		}
		select {
		case <-time.After(recountRest * time.Since(began)):
		case <-ctx.Done():
			return
		}
	}
}

// brokenFlags counts the tenant's flags with problems until ctx ends.
func (t *Tenant) brokenFlags(ctx context.Context) (n int) {
	for _, key := range t.dependents.all() {
		if ctx.Err() != nil {
			return n
		}
		if len(t.FlagProblems(key)) > 0 {
			n++
		}
	}
	return n
}
