package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flagledger/commands"
	"flagledger/http/quota"
)

// hashFrom hashes for a request from an address, which takes 40 ms.
func hashFrom(ctx context.Context, h *Hashing, limiter *quota.Limiter, address string) error {
	r := httptest.NewRequest(http.MethodPost, "/auth/signin", nil)
	r.RemoteAddr = address
	return h.Run(context.WithValue(ctx, requestKey{}, &request{received: r, limiter: limiter}),
		func() { time.Sleep(40 * time.Millisecond) })
}

// During a flood of sign-ins from many networks, a sign-in from another network waits for one of each at most.
func TestHashingIsSharedByNetworks(t *testing.T) {
	for name, address := range map[string]func(network, i int) string{
		"IPv4 /24": func(network, i int) string { return fmt.Sprintf("10.0.%d.%d:1", network, i) },
		"IPv6 /48": func(network, i int) string { return fmt.Sprintf("[2001:db8:%x:%x::1]:1", network, i) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const networks, each = 30, 20
				// with two slots
				h := &Hashing{
					quota.NewQueue(quota.QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 100, Waiting: nodeWaiting, Timeout: QueueTimeout}),
				}
				limiter := quota.NewLimiter(quota.Limits{}, nil, time.Now)
				var all sync.WaitGroup
				var busy atomic.Int64
				for network := range networks {
					for i := range each {
						all.Go(func() {
							if hashFrom(t.Context(), h, limiter, address(network, i)) != nil {
								busy.Add(1)
							}
						})
					}
				}
				for i := range 20 {
					began := time.Now()
					if err := hashFrom(t.Context(), h, limiter, address(200+i, 1)); err != nil ||
						time.Since(began) > (networks+1)*40*time.Millisecond {
						t.Errorf("it waits for %v: %v", time.Since(began), err)
					}
					time.Sleep(150 * time.Millisecond)
				}
				all.Wait()
				if busy.Load() == 0 {
					t.Error("the flood was too small to show anything")
				}
			})
		})
	}
}

func TestHashingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, limiter, slots := NewHashing(0), quota.NewLimiter(quota.Limits{}, nil, time.Now), runtime.GOMAXPROCS(0)
		for range slots {
			_ = func() (err error) {
				defer func() { _ = recover() }()
				return h.Run(t.Context(), func() { panic("x") })
			}()
		}
		if err := hashFrom(t.Context(), h, limiter, "192.0.2.1:1"); err != nil {
			t.Errorf("a panic keeps its slot: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var all sync.WaitGroup
		for i := range slots {
			all.Go(func() { _ = hashFrom(t.Context(), h, limiter, fmt.Sprintf("10.0.%d.1:1", i)) })
		}
		synctest.Wait()
		if err := hashFrom(ctx, h, limiter, "192.0.2.1:1"); commands.KindOf(err) != commands.Unavailable ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("who goes away is answered %v", err)
		}
		all.Wait()
	})
}
