package quota

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// rate is the limit of a window, also as a header value.
type rate struct {
	max    int
	header []string
}

func newRate(n int) rate { return rate{n, []string{strconv.Itoa(n)}} }

// Budget is the remainder of a limit in the current window.
type Budget struct {
	rate
	Remaining int
	Reset     int // seconds until the next window, at least 1
	Exceeded  bool
}

// Spent returns an exhausted budget that resets after left, rounded up to seconds.
func Spent(limit int, left time.Duration) Budget {
	return Budget{rate: newRate(limit), Reset: int((left + time.Second - 1) / time.Second), Exceeded: true}
}

// Show sets the headers RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, in this spelling.
func (b Budget) Show(h http.Header) {
	values := &[2]string{strconv.Itoa(b.Remaining), strconv.Itoa(b.Reset)}
	h["RateLimit-Limit"], h["RateLimit-Remaining"], h["RateLimit-Reset"] = b.header, values[0:1:1], values[1:2:2]
}

// windows counts by key. Each key has its own fixed windows; the first begins with its first request.
type windows[K comparable] struct {
	seconds  uint32
	byKey    *xsync.Map[K, *window]
	sweeping sync.Mutex
}

// maxWindows limits the number of keys that are counted: some 10 MB.
const maxWindows = 100_000

func newWindows[K comparable](seconds uint32) *windows[K] {
	return &windows[K]{seconds: seconds, byKey: xsync.NewMap[K, *window]()}
}

// take counts one request, unless the limit is reached.
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

// giveBack undoes a recent take.
func (ws *windows[K]) giveBack(key K) {
	if w, ok := ws.byKey.Load(key); ok {
		w.giveBack()
	}
}

// sweep drops the windows that have ended. If most have not, it drops every other one: with more clients than can be
// counted, some are not limited.
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

// window holds the second in which it began and its count, in one word.
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
