package http

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"flagledger/http/fair"
)

// shares are the queues that costly work waits in. Evaluations of one flag wait in none, unless comparing takes long.
type shares struct {
	evaluations *fair.Queue // evaluations of many flags and costly ones, and reading large bodies of evaluations
	reads       *fair.Queue // reads of the database
	changes     *fair.Queue // changes with large bodies, from reading these to the answer
	bodies      *fair.Queue // large bodies in memory, from before they come in to the answer
}

const (
	// largeBody is the size from which a body counts as costly, in bytes.
	largeBody = 32 << 10
	// patience is the longest that costly work waits to begin.
	patience = 5 * time.Second
	// nodeWaiting is how much work of all tenants waits in each queue at most.
	nodeWaiting = 4000
)

// newShares makes the queues of a node whose database takes so many reads at once.
func newShares(reads int) shares {
	half := func(n int) int { return max(1, n/2) }
	cores := half(runtime.GOMAXPROCS(0))
	return shares{
		evaluations: fair.New(fair.Limits{Slots: cores, Each: half(cores), PerTenant: 1000, Waiting: nodeWaiting, Patience: patience}),
		reads:       fair.New(fair.Limits{Slots: reads, Each: half(reads), PerTenant: 100, Waiting: nodeWaiting, Patience: patience}),
		changes:     fair.New(fair.Limits{Slots: 2, Each: 1, PerTenant: 100, Waiting: nodeWaiting, Patience: patience, Rest: 3}),
		bodies:      fair.New(fair.Limits{Slots: 128, Each: 8, PerTenant: 100, Waiting: nodeWaiting, Patience: patience}),
	}
}

// enter waits in a queue for the turn of a principal's tenant, or of the person where the call is about no tenant. Its error is a problem.
func enter(ctx context.Context, q *fair.Queue, p *principal) (*fair.Turn, error) {
	whose := p.claims.UserID // empty for anyone
	if p.tenant != nil {
		whose = p.tenant.ID()
	}
	turn, err := q.Enter(ctx, whose)
	switch {
	case err == nil:
		return turn, nil
	case errors.Is(err, fair.ErrTenantBusy):
		busy := newProblem(http.StatusTooManyRequests, "too many costly requests of the tenant are under way, and this one's turn did not come; it has not been carried out")
		busy.headers.Set("Retry-After", "1")
		return nil, busy
	default:
		return nil, newProblem(http.StatusServiceUnavailable, "too many costly requests are under way, and this one's turn did not come; it has not been carried out")
	}
}

// isLarge reports whether the body of a request may be large.
func isLarge(r *http.Request) bool { return r.ContentLength < 0 || r.ContentLength > largeBody }
