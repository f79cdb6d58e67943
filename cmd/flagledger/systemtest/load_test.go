package systemtest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

// killCount is how often a test kills: FLAGLEDGER_KILLS, or the default.
func killCount(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("FLAGLEDGER_KILLS")); err == nil {
		return n
	}
	return usual
}

// Callers pause between calls. Without a pause, they alone would use a whole core.
const (
	betweenWrites = 25 * time.Millisecond
	betweenReads  = 50 * time.Millisecond
)

// pause waits for a caller's pause, or until ctx ends.
func pause(ctx context.Context, between time.Duration) {
	select {
	case <-time.After(between):
	case <-ctx.Done():
	}
}

// keepEvaluating evaluates flags and reads the health until stop is called. Each evaluation must return what is wanted
// of its flag.
func keepEvaluating(t *testing.T, c *nodetest.Client, want map[string]string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var took nodetest.Samples
	var callers sync.WaitGroup
	for key, value := range want {
		callers.Go(func() {
			for ; ctx.Err() == nil; pause(ctx, betweenReads) {
				r := c.Attempt("POST", nodetest.FlagPath(key, "/evaluate"), `{"targetingKey":"u1"}`)
				took.Add(r.Took)
				if r.Status != 200 || !strings.Contains(r.Body, value) {
					t.Errorf("evaluation of %s: %v", key, r)
					return
				}
				if r := c.Attempt("GET", "/health", ""); r.Status != 200 {
					t.Errorf("health: %v", r)
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		cancel()
		callers.Wait()
		t.Logf("evaluations: %v", &took)
	})
}

// load runs writers and records the outcome of each write: acknowledged or unknown. Odd writes create a flag; even ones
// give the writer's own flag a unique description.
type load struct {
	c            *nodetest.Client
	acknowledged atomic.Int64
	async        atomic.Int64 // acknowledged before they could be read
	unknown      atomic.Int64
	outcomes     []map[int]bool // by writer and write: whether it was acknowledged
	writing      sync.RWMutex   // write-locked while writes must stop
	stop         func()
}

func startLoad(c *nodetest.Client, writers int) *load {
	l := &load{c: c}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for w := range writers {
		c.CreateFlag(ownFlag(w), nil)
		c.SetRules(ownFlag(w), `{"rules":[{"conditions":[],"serve":{"value":true}}]}`).Want(200)
		c.SetFallthrough(ownFlag(w), `{"serve":{"value":false}}`).Want(200)
		outcomes := map[int]bool{}
		l.outcomes = append(l.outcomes, outcomes)
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := l.write(w, n)
				switch outcomes[n] = r.Status/100 == 2; {
				case outcomes[n]:
					l.acknowledged.Add(1)
					if r.Header.Get("Preference-Applied") != "" {
						l.async.Add(1)
					}
				case r.Err != nil || r.Status == 503 || r.Status == 429: // 429 after a timeout in a queue
					l.unknown.Add(1)
				default:
					c.Service.T.Errorf("write %d of writer %d: %v", n, w, r)
				}
				pause(ctx, betweenWrites)
			}
		})
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
	})
	c.Service.T.Cleanup(l.stop)
	return l
}

func ownFlag(writer int) string { return fmt.Sprintf("own-%d", writer) }

func newFlagKey(writer, n int) string { return fmt.Sprintf("new-%d-%d", writer, n) }

func (l *load) write(w, n int) nodetest.Reply {
	l.writing.RLock()
	defer l.writing.RUnlock()
	if n%2 == 1 {
		return l.c.Attempt("POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":"boolean"}`, newFlagKey(w, n)))
	}
	return l.c.Attempt("PATCH", nodetest.FlagPath(ownFlag(w)), fmt.Sprintf(`{"description":"write %d"}`, n))
}

// more waits until that many more writes are acknowledged.
func (l *load) more(n int64) {
	l.c.Service.T.Helper()
	before := l.acknowledged.Load()
	l.c.Service.Eventually("more writes are acknowledged", func() bool { return l.acknowledged.Load() >= before+n })
}

// hold waits for pending writes, and blocks new ones until release is called, once or more.
func (l *load) hold() (release func()) {
	l.writing.Lock()
	return sync.OnceFunc(l.writing.Unlock)
}

// audit checks, after the load has stopped and the read models are current, that each acknowledged write happened once
// and no write twice.
func (l *load) audit() {
	t := l.c.Service.T
	t.Helper()
	flags := map[string]bool{}
	for _, flag := range l.c.Call("GET", "/api/v1/flags", nil).Want(200).List() {
		flags[flag["key"].(string)] = true
	}
	var acknowledged, unknown, applied int
	for w, outcomes := range l.outcomes {
		times := map[int]int{} // that a write is in the history
		for _, entry := range l.c.Call("GET", nodetest.FlagPath(ownFlag(w), "/history"), nil).Want(200).List() {
			change, ok := entry["changes"].(map[string]any)["description"].(map[string]any)
			if !ok {
				continue
			}
			n := -1
			if _, err := fmt.Sscanf(change["to"].(string), "write %d", &n); err != nil {
				t.Errorf("the history of %s tells of a change that nobody made: %v", ownFlag(w), entry)
			}
			times[n]++
		}
		for n := range outcomes {
			if key := newFlagKey(w, n); n%2 == 1 && flags[key] {
				times[n] = len(l.c.Call("GET", nodetest.FlagPath(key, "/history"), nil).Want(200).List())
			}
		}
		for n, acked := range outcomes {
			switch {
			case acked:
				acknowledged++
			default:
				unknown++
				applied += times[n]
			}
			if acked && times[n] == 0 {
				t.Errorf("write %d of writer %d was acknowledged and is lost", n, w)
			}
			if times[n] > 1 {
				t.Errorf("write %d of writer %d was made %d times", n, w, times[n])
			}
		}
	}
	t.Logf("%d writes acknowledged, %d of them before they could be read; %d of unknown outcome, of which %d were made",
		acknowledged, l.async.Load(), unknown, applied)
}
