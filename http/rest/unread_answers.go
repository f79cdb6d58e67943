package rest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// unread counts the answers that wait until their reader takes more of them, which hold memory meanwhile.
type unread struct {
	all atomic.Int64
	mu  sync.Mutex
	by  map[string]int // by caller; nobody stands in it with 0
}

const (
	// A caller with fewer than minPerCaller unread answers is admitted, and one with none always: also while all leave
	// twice maxUnread or more.
	minPerCaller = 4
	// All callers together leave maxUnread answers unread at most, and one a share of what is left of them: an
	// unreadShare-th.
	maxUnread, unreadShare = 432, 8
	// sentAtOnce is how many bytes of an answer do not count: the server's buffers take them.
	sentAtOnce = 4 << 10
)

func newUnreadCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "flagledger_unread_refused_total",
		Help: "Requests that were refused since their caller had left too many answers unread.",
	})
}

// admits reports whether a caller may make a further request.
func (u *unread) admits(caller func() string) bool {
	all := int(u.all.Load())
	if all < minPerCaller {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	least := minPerCaller
	if all >= 2*maxUnread {
		least = 1
	}
	return u.by[caller()] < max(least, (maxUnread-all)/unreadShare)
}

// add counts n more answers of a caller.
func (u *unread) add(caller string, n int) {
	u.all.Add(int64(n))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by[caller] += n; u.by[caller] == 0 {
		delete(u.by, caller)
	}
}

// LimitUnread refuses a request of a caller who does not read the answers to others. Its error is a problem.
func (a *Core) LimitUnread(ctx context.Context) error {
	req := RequestOf(ctx)
	if a.unread.admits(func() string { return a.answerQuota(req) }) {
		return nil
	}
	a.refusedUnread.Inc()
	p := NewProblem(http.StatusTooManyRequests, "too many answers wait until you read them")
	p.headers.Set("Retry-After", "1")
	req.answer["RateLimit-Remaining"], req.answer["RateLimit-Reset"] = []string{"0"}, []string{"1"}
	return p
}
