package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"flagledger/commands"
	"flagledger/http/quota"
)

// A mail that may have been sent counts, even if the call failed.
func TestMailsThatMayHaveGoneOutCount(t *testing.T) {
	a := newCore(quota.Limits{Auth: 1})
	req := &request{answer: http.Header{}, serviceLog: a.Log, received: httptest.NewRequest(http.MethodPost, "/", nil)}
	ctx := context.WithValue(t.Context(), requestKey{}, req)
	mail := func(result error) error { return a.LimitMails(ctx, func() error { return result }) }
	for _, refusal := range []error{&commands.Error{Kind: commands.Conflict}, &commands.Error{Kind: commands.TooMany}, NewProblem(http.StatusBadRequest, "")} {
		for range 10 {
			if err := mail(refusal); !errors.Is(err, refusal) {
				t.Fatalf("%v counts: %v", refusal, err)
			}
		}
	}
	for _, result := range []error{nil, errors.New("lost"), context.Canceled, &commands.Error{Kind: commands.Unavailable}, nil} {
		if err := mail(result); !errors.Is(err, result) {
			t.Fatalf("refused too early: %v", err)
		}
	}
	if refused, _ := errors.AsType[*Problem](mail(nil)); refused == nil || refused.Status != http.StatusTooManyRequests {
		t.Error("a further mail goes out")
	}
}

func TestWhoIsRefusedElsewhereIsToldOneTimeToWait(t *testing.T) {
	req := &request{answer: http.Header{"RateLimit-Reset": {"17"}}, serviceLog: slog.New(slog.DiscardHandler)}
	ctx := context.WithValue(t.Context(), requestKey{}, req)
	p := ProblemOf(ctx, &commands.Error{Kind: commands.TooMany, Detail: "Firebase has seen too many attempts"})
	if p.Status != 429 || p.headers.Get("Retry-After") != "17" {
		t.Errorf("refused with %+v", p)
	}
}
