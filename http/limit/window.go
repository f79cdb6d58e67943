package limit

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// rate is how much is allowed in a window, also as a header.
type rate struct {
	max    int
	header []string
}

func newRate(n int) rate { return rate{n, []string{strconv.Itoa(n)}} }

// Budget is what is left of a limit in the current window.
type Budget struct {
	rate
	Remaining int
	Reset     int // seconds until the next window, at least 1
	Exceeded  bool
}

// Spent is a budget of which nothing is left for a time, of which a further second has begun.
func Spent(limit int, left time.Duration) Budget {
	return Budget{rate: newRate(limit), Reset: int((left + time.Second - 1) / time.Second), Exceeded: true}
}

// Show sets the headers RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, in this spelling.
func (b Budget) Show(h http.Header) {
	values := &[2]string{strconv.Itoa(b.Remaining), strconv.Itoa(b.Reset)}
	h["RateLimit-Limit"], h["RateLimit-Remaining"], h["RateLimit-Reset"] = b.header, values[0:1:1], values[1:2:2]
}

// windows counts by key. Each key has fixed windows of its own, the first of which begins with its first request.
type windows[K comparable] struct {
	seconds  uint32
	byKey    *xsync.Map[K, *window]
	sweeping sync.Mutex
}

// maxWindows bounds how many keys are counted at once: some 10 MB.
const maxWindows = 100_000

func newWindows[K comparable](seconds uint32) *windows[K] {
	return &windows[K]{seconds: seconds, byKey: xsync.NewMap[K, *window]()}
}

// take counts one more, unless the limit is reached.
func (ws *windows[K]) take(key K, allowed rate, now uint32) Budget {
	w, ok := ws.byKey.Load(key)
	if !ok {
		if ws.byKey.Size() >= maxWindows {
			ws.sweep(now)
		}
		w, _ = ws.byKey.LoadOrStore(key, &window{})
	}
	return w.take(allowed, now, ws.seconds)
}

// holds reports whether a key has been counted in its current window.
func (ws *windows[K]) holds(key K, now uint32) bool {
	w, ok := ws.byKey.Load(key)
	if !ok {
		return false
	}
	began, count := split(w.state.Load())
	return count > 0 && int32(now-began) < int32(ws.seconds)
}

// giveBack undoes a take of just now.
func (ws *windows[K]) giveBack(key K) {
	if w, ok := ws.byKey.Load(key); ok {
		w.giveBack()
	}
}

// sweep drops the windows that have ended. If most have not, it drops every other one: when there are more clients than
// can be counted, some are let through.
func (ws *windows[K]) sweep(now uint32) {
	if !ws.sweeping.TryLock() {
		return
	}
	defer ws.sweeping.Unlock()
	ws.byKey.DeleteMatching(func(_ K, w *window) (bool, bool) {
		began, _ := split(w.state.Load())
		return now-began >= ws.seconds, false
	})
	if ws.byKey.Size() > maxWindows/2 {
		drop := false
		ws.byKey.DeleteMatching(func(K, *window) (bool, bool) {
			drop = !drop
			return drop, false
		})
	}
}

// window is the second in which a window began, and its count, in one word.
type window struct{ state atomic.Uint64 }

func split(state uint64) (began, count uint32) { return uint32(state >> 32), uint32(state) }

func (w *window) take(allowed rate, now, seconds uint32) Budget {
	for {
		state := w.state.Load()
		began, count := split(state)
		switch {
		case count == 0 || int32(now-began) >= int32(seconds):
			began, count = now, 0
		case int32(now-began) < 0: // a request that read the clock later was faster
			now = began
		}
		b := Budget{rate: allowed, Reset: int(began + seconds - now)}
		if int(count) >= allowed.max {
			b.Exceeded = true
			return b
		}
		if w.state.CompareAndSwap(state, uint64(began)<<32|uint64(count+1)) {
			b.Remaining = allowed.max - int(count) - 1
			return b
		}
	}
}

func (w *window) giveBack() {
	for {
		state := w.state.Load()
		if _, count := split(state); count == 0 || w.state.CompareAndSwap(state, state-1) {
			return
		}
	}
}
