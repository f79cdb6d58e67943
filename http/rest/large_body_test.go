package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands/people"
	"flagledger/http/quota"
)

// dribble is a body that arrives in slow pieces and never ends.
type dribble struct{ every time.Duration }

func (d dribble) Read(b []byte) (int, error) {
	time.Sleep(d.every)
	return copy(b, make([]byte, 1000)), nil
}

func TestALargeBodyThatComesSlowlyMakesWayForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Core{
			Queues: queues{
				Memory: quota.NewQueue(quota.QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 10, Waiting: 10, Timeout: time.Minute}),
			},
		}
		read := func(who string, body io.Reader) (*quota.Slot, error) {
			r := httptest.NewRequest(http.MethodPost, "/", body)
			p := &Principal{Credential: &Credential{Claims: people.Claims{UserID: who}}}
			return a.ReadBody(r.WithContext(context.WithValue(t.Context(), requestKey{}, &request{})), p, &bytes.Buffer{})
		}
		refused := func(err error, status int) {
			t.Helper()
			if p, _ := errors.AsType[*Problem](err); p == nil || p.Status != status {
				t.Errorf("refused with %v, want %d", err, status)
			}
		}
		alone := make(chan error)
		go func() {
			_, err := read("slow", dribble{20 * time.Millisecond})
			alone <- err
		}()
		refused(<-alone, http.StatusBadRequest) // it exceeds 1 MiB at its end, and no other call waits

		slow := make(chan error)
		go func() {
			_, err := read("slow", dribble{20 * time.Millisecond})
			slow <- err
		}()
		time.Sleep(time.Second)
		began := time.Now()
		slot, err := read("other", bytes.NewReader(make([]byte, 100_000)))
		if took := time.Since(began); err != nil || took > pieceTimeout {
			t.Errorf("another waits %v and is answered %v", took, err)
		}
		slot.Leave()
		refused(<-slow, http.StatusServiceUnavailable)
	})
}

func TestALargeChangeOfFlagsHasATurnButWhileItWaitsForOthers(t *testing.T) {
	a := &Core{Queues: queues{
		Memory: quota.NewQueue(quota.QueueLimits{Slots: 10, FlowSlots: 10, FlowWaiting: 10, Waiting: 10, Timeout: time.Millisecond}),
		CPU:    quota.NewQueue(quota.QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 10, Waiting: 10, Timeout: time.Millisecond}),
	}}
	admit := func(who string, need Access) (*request, error) {
		need.MaxBody = maxBody
		req := &request{answer: http.Header{}}
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, 40_000)))
		g := &guard{api: a, need: need, body: &huma.Schema{}}
		p := &Principal{Credential: &Credential{Claims: people.Claims{UserID: who}}}
		ctx := context.WithValue(context.WithValue(t.Context(), requestKey{}, req), principalKey{}, p)
		leave, err := g.readLargeBody(r.WithContext(ctx), p)
		if err == nil {
			t.Cleanup(leave)
			_, err = g.enterLargeChange(ctx)
		}
		return req, err
	}
	mine, err := admit("me", ChangeFlags)
	if err != nil || mine.changeSlot == nil {
		t.Fatalf("it has no slot: %v", err)
	}
	if _, err := admit("other", Access{Who: Admin}); err != nil {
		t.Errorf("a call that changes no flag waits: %v", err)
	}
	if _, err := admit("other", ChangeFlags); err == nil {
		t.Error("two have the only slot")
	}
	resume := mine.pauseChange()()
	other, err := admit("other", ChangeFlags)
	if err != nil {
		t.Fatalf("another is refused while the first waits: %v", err)
	}
	other.changeSlot.Leave()
	if err := resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admit("other", ChangeFlags); err == nil {
		t.Error("two have the only slot")
	}
}

func TestAChangeWithCostlyRulesWaitsAsALargeOneDoes(t *testing.T) {
	a := &Core{
		Queues: queues{
			CPU: quota.NewQueue(quota.QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 10, Waiting: 10, Timeout: time.Millisecond}),
		},
	}
	ctx := func(who string, req *request) context.Context {
		return context.WithValue(context.WithValue(t.Context(), requestKey{}, req), principalKey{},
			&Principal{Credential: &Credential{Claims: people.Claims{UserID: who}}})
	}
	mine := &request{answer: http.Header{}}
	leave, err := a.EnterChanges(ctx("me", mine))
	if err != nil || mine.pauseChange() == nil {
		t.Fatalf("it has no slot: %v", err)
	}
	if _, err := a.EnterChanges(ctx("other", &request{answer: http.Header{}})); err == nil {
		t.Error("two have the only slot")
	}
	if again, err := a.EnterChanges(ctx("me", mine)); err != nil {
		t.Errorf("a request that has a slot waits for another: %v", err)
	} else {
		again()
	}
	if _, err := a.EnterChanges(ctx("other", &request{answer: http.Header{}})); err == nil {
		t.Error("the slot is given back too soon")
	}
	leave()
	if _, err := a.EnterChanges(ctx("other", &request{answer: http.Header{}})); err != nil {
		t.Errorf("the slot is not given back: %v", err)
	}
}

// deadlines records the last read deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.last = t
	return nil
}

// The server removes a deadline when a body ends. If the body ends exactly with a piece, the next read must not leave a
// deadline behind: it would cancel the call 3 s later.
func TestNoDeadlineOutlivesABody(t *testing.T) {
	for _, size := range []int{LargeBody + 1, LargeBody + 2, 2*LargeBody + 1} {
		connection := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodPost, "/", iotest.DataErrReader(bytes.NewReader(make([]byte, size))))
		r = r.WithContext(
			context.WithValue(r.Context(), requestKey{}, &request{received: r, writer: answerWriter{ResponseWriter: connection}}),
		)
		var body bytes.Buffer
		if _, err := io.CopyN(&body, r.Body, LargeBody+1); err != nil {
			t.Fatal(err)
		}
		slot, err := quota.NewQueue(quota.QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 1, Waiting: 1, Timeout: time.Minute}).
			Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := readRest(r, &body, maxBody, slot); err != nil || body.Len() != size {
			t.Errorf("of %d bytes %d are read: %v", size, body.Len(), err)
		}
		if !connection.last.IsZero() {
			t.Errorf("%d bytes leave a deadline behind: %v", size, connection.last)
		}
		slot.Leave()
	}
}
