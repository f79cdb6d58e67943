package http

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"
)

// rate is how much is allowed in a window, also as a header.
type rate struct {
	max    int
	header []string
}

func newRate(n int) rate { return rate{n, []string{strconv.Itoa(n)}} }

// budget is what is left of a rate in its window.
type budget struct {
	rate
	remaining int
	reset     int // seconds left of the window, at least 1
	exceeded  bool
}

// show writes a budget into the headers of an answer, in the spelling of the interface.
func (b budget) show(h http.Header) {
	values := &[2]string{strconv.Itoa(b.remaining), strconv.Itoa(b.reset)}
	h["RateLimit-Limit"], h["RateLimit-Remaining"], h["RateLimit-Reset"] = b.header, values[0:1:1], values[1:2:2]
}

func (b budget) problem() *problem {
	p := newProblem(http.StatusTooManyRequests, "the rate limit is exceeded; try again later, in "+strconv.Itoa(b.reset)+" s")
	p.headers.Set("Retry-After", strconv.Itoa(b.reset))
	return p
}

// windows counts by key, each in windows of its own that begin with its first request.
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
func (ws *windows[K]) take(key K, allowed rate, now uint32) budget {
	w, ok := ws.byKey.Load(key)
	if !ok {
		if ws.byKey.Size() >= maxWindows {
			ws.sweep(now)
		}
		w, _ = ws.byKey.LoadOrStore(key, &window{})
	}
	return w.take(allowed, now, ws.seconds)
}

// giveBack undoes a take of just now.
func (ws *windows[K]) giveBack(key K) {
	if w, ok := ws.byKey.Load(key); ok {
		w.giveBack()
	}
}

// sweep drops the windows that are over. Where most are not, all begin anew: more clients than can be counted are let pass.
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
		ws.byKey.Clear()
	}
}

// window is the second in which a window began, and how many it has counted, in one word.
type window struct{ state atomic.Uint64 }

func split(state uint64) (began, count uint32) { return uint32(state >> 32), uint32(state) }

func (w *window) take(allowed rate, now, seconds uint32) budget {
	for {
		state := w.state.Load()
		began, count := split(state)
		switch {
		case count == 0 || int32(now-began) >= int32(seconds):
			began, count = now, 0
		case int32(now-began) < 0: // another request looked at the clock later and was here first
			now = began
		}
		b := budget{rate: allowed, reset: int(began + seconds - now)}
		if int(count) >= allowed.max {
			b.exceeded = true
			return b
		}
		if w.state.CompareAndSwap(state, uint64(began)<<32|uint64(count+1)) {
			b.remaining = allowed.max - int(count) - 1
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
