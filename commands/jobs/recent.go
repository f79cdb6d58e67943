package jobs

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxMails   = 5 // invitations to an address within mailWindow, from each node
	mailWindow = time.Hour
)

// recentMails are when addresses were last mailed an invitation.
type recentMails struct {
	mu    sync.Mutex
	sent  map[[sha256.Size]byte][]time.Time
	swept time.Time
}

// take notes a mail to an address, and reports false where it would be one too many. giveBack takes the note back for a mail that was not sent.
func (r *recentMails) take(email string, now time.Time) (giveBack func(), ok bool) {
	key := sha256.Sum256([]byte(strings.ToLower(email)))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	times := slices.DeleteFunc(r.sent[key], func(t time.Time) bool { return now.Sub(t) >= mailWindow })
	if len(times) >= maxMails {
		return nil, false
	}
	r.sent[key] = append(times, now)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if i := slices.Index(r.sent[key], now); i >= 0 {
			r.sent[key] = slices.Delete(r.sent[key], i, i+1)
		}
	}, true
}

// sweep forgets all addresses that have got none of late, once in each window.
func (r *recentMails) sweep(now time.Time) {
	if r.sent != nil && now.Sub(r.swept) < mailWindow {
		return
	}
	if r.sent == nil {
		r.sent = map[[sha256.Size]byte][]time.Time{}
	}
	r.swept = now
	for key, times := range r.sent {
		if len(times) == 0 || now.Sub(times[len(times)-1]) >= mailWindow {
			delete(r.sent, key)
		}
	}
}
