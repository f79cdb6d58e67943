package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flagledger/commands"
)

func TestGuessing(t *testing.T) {
	a, clock := newCoreWithClock(anonymous(1000))
	req := &request{answer: http.Header{}, serviceLog: a.Log, received: httptest.NewRequest(http.MethodPost, "/", nil)}
	ctx := context.WithValue(t.Context(), requestKey{}, req)
	tried := 0
	guess := func(account string, result error) error {
		return a.LimitAttempts(ctx, account, func() error {
			tried++
			return result
		})
	}
	wrong := &commands.Error{Kind: commands.Unauthenticated}
	for range 100 {
		if err := guess("person me@example.com", nil); err != nil {
			t.Fatal("the right secret is refused")
		}
		if err := guess("person me@example.com", &commands.Error{Kind: commands.Unavailable}); commands.KindOf(err) != commands.Unavailable {
			t.Fatalf("an outage counts as a guess: %v", err)
		}
	}
	for range 20 {
		if err := guess("person me@example.com", wrong); !errors.Is(err, wrong) {
			t.Fatalf("refused too early: %v", err)
		}
	}
	tried = 0
	*clock = clock.Add(14 * time.Minute)
	for _, result := range []error{wrong, nil} {
		refused, ok := errors.AsType[*Problem](guess("person me@example.com", result))
		if !ok || refused.Status != 429 || refused.headers.Get("Retry-After") != "60" || tried != 0 {
			t.Fatalf("%d tried: %v", tried, refused)
		}
		_ = refused.complete(ctx)
	}
	if got := fmt.Sprint(req.answer); got != "map[RateLimit-Limit:[20] RateLimit-Remaining:[0] RateLimit-Reset:[60]]" {
		t.Errorf("the answer shows %s", got)
	}
	if err := guess("person you@example.com", nil); err != nil {
		t.Errorf("another is refused: %v", err)
	}
	req.received.RemoteAddr = "[2001:db8::1]:4711"
	if err := guess("person me@example.com", nil); err != nil {
		t.Errorf("the owner is refused, who comes from elsewhere: %v", err)
	}
	req.received.RemoteAddr = "192.0.2.1:4711"
	*clock = clock.Add(time.Minute)
	if err := guess("person me@example.com", nil); err != nil {
		t.Errorf("refused when it is over: %v", err)
	}
}
