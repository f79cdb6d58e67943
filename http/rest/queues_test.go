package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/projections/snapshot"
)

func TestWhoGetsNoSlotIsToldOneTimeToWait(t *testing.T) {
	a := &Core{}
	q := quota.NewQueue(quota.QueueLimits{Slots: 2, FlowSlots: 2, FlowWaiting: 1, Waiting: 10, Timeout: time.Millisecond})
	p := &Principal{Credential: &Credential{Claims: people.Claims{UserID: "me"}}}
	refused := func(from func(context.Context) error, detail, limit string) {
		t.Helper()
		req := &request{
			answer:     http.Header{"RateLimit-Remaining": {"99"}, "RateLimit-Reset": {"60"}},
			serviceLog: slog.New(slog.DiscardHandler),
		}
		ctx := context.WithValue(t.Context(), requestKey{}, req)
		got := ProblemOf(ctx, from(ctx))
		if got.Status != 429 || got.Detail != "the rate limit is exceeded: "+detail+"; try again later, in 1 s" ||
			got.headers.Get("Retry-After") != "1" {
			t.Errorf("refused with %d %s %v", got.Status, got.Detail, got.headers)
		}
		if shown := fmt.Sprint(
			req.answer,
		); shown != "map[RateLimit-Limit:["+limit+"] RateLimit-Remaining:[0] RateLimit-Reset:[1]]" {
			t.Errorf("the answer shows %s", shown)
		}
	}
	for range 2 {
		if _, err := a.EnterQueue(t.Context(), q, p); err != nil {
			t.Fatal(err)
		}
	}
	refused(func(ctx context.Context) error {
		_, err := a.EnterQueue(ctx, q, p)
		return err
	}, "too many costly requests that count together with this one are under way or waiting; this one was not carried out", "2")
	refused(func(context.Context) error {
		return &commands.Error{Kind: commands.TooMany, Detail: "8 are made at once", AtOnce: 8}
	}, "8 are made at once", "8")

	other := &Principal{Credential: &Credential{Claims: people.Claims{UserID: "other"}}}
	if p, _ := errors.AsType[*Problem](
		func() error { _, err := a.EnterQueue(t.Context(), q, other); return err }(),
	); p == nil ||
		p.Status != http.StatusServiceUnavailable {
		t.Errorf("another, who has nothing under way, is refused with %v", p)
	}
}

// What may wait for a provider holds no slot of the database.
func TestWhichOperationsWaitInQueues(t *testing.T) {
	inTenant, asPerson := &Principal{Tenant: &snapshot.Tenant{}}, &Principal{}
	a := &Core{Queues: newQueues(2, QueueTimeout)}
	for name, test := range map[string]struct {
		p      *Principal
		need   Access
		method string
		want   *quota.Queue
	}{
		"a sign-in":                          {asPerson, Access{Who: Anyone}, http.MethodPost, nil},
		"a refresh of a session":             {asPerson, Access{Who: Anyone, Slow: true}, http.MethodPost, a.Queues.Memory},
		"a list of a tenant":                 {inTenant, Access{Who: Viewer}, http.MethodGet, a.Queues.Database},
		"a person's devices":                 {asPerson, Access{Who: Person}, http.MethodGet, a.Queues.Database},
		"a sign-out":                         {asPerson, Access{Who: Person, Slow: true}, http.MethodPost, a.Queues.Memory},
		"a person's notification":            {asPerson, Access{Who: Person}, http.MethodPost, a.Queues.Database},
		"a change of somebody's role":        {asPerson, RoleAccess, http.MethodPatch, a.Queues.Database},
		"a cleanup of a sandbox":             {inTenant, Access{Who: Admin, Slow: true}, http.MethodPost, a.Queues.Memory},
		"a switch, which nothing may delay":  {inTenant, Access{Who: Developer, Scope: events.FlagsWrite}, http.MethodPost, nil},
		"another change of a tenant's flags": {inTenant, Access{Who: Developer, Scope: events.FlagsWrite}, http.MethodDelete, nil},
	} {
		if got := a.queueOf(test.p, test.need, test.method); got != test.want {
			t.Errorf("%s waits in the queue %p of %+v", name, got, a.Queues)
		}
	}
}

// Of each queue, however few slots it has, a tenant leaves some to others.
func TestATenantLeavesSlotsToOthers(t *testing.T) {
	queues := newQueues(2, QueueTimeout)
	for name, q := range map[string]*quota.Queue{"cpu": queues.CPU, "database": queues.Database, "memory": queues.Memory} {
		for i := range q.Limits().FlowSlots {
			if _, err := q.Enter(t.Context(), "me"); err != nil {
				t.Fatalf("%s %d: %v", name, i, err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Enter(ended, "other"); err != nil {
			t.Errorf("%s: another tenant waits: %v", name, err)
		}
	}
}

func TestAReadOfThePastWaitsForItsTurnAndHoldsNoOther(t *testing.T) {
	one := quota.QueueLimits{Slots: 1, FlowSlots: 1, FlowWaiting: 10, Waiting: 10, Timeout: time.Millisecond}
	a := &Core{Queues: queues{Database: quota.NewQueue(one), CPU: quota.NewQueue(one)}}
	p := &Principal{Credential: &Credential{Claims: people.Claims{UserID: "me"}}}
	req := &request{}
	ctx := context.WithValue(context.WithValue(t.Context(), requestKey{}, req), principalKey{}, p)
	var err error
	if req.readSlot, err = a.EnterQueue(ctx, a.Queues.Database, p); err != nil {
		t.Fatal(err)
	}
	slot, err := a.EnterPast(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.EnterPast(ctx); err == nil {
		t.Error("two add up what flags were at once")
	}
	if read, err := a.EnterQueue(ctx, a.Queues.Database, p); err != nil {
		t.Errorf("another read waits for it: %v", err)
	} else {
		read.Leave()
	}
	slot.Leave()
	if _, err := a.EnterPast(ctx); err != nil {
		t.Errorf("the slot is not given back: %v", err)
	}
}

// The owner of an IPv6 /48 has 65,536 networks, and can have any number of accounts with unverified addresses.
func TestASiteHasOneShare(t *testing.T) {
	t.Parallel()
	for name, claims := range map[string]people.Claims{"not signed in": {}, "not verified": {UserID: "someone"}} {
		a := &Core{Options: Options{Environment: "production"}, Limiter: quota.NewLimiter(quota.Limits{}, nil, time.Now)}
		q := quota.NewQueue(quota.QueueLimits{Slots: 16, FlowSlots: 2, FlowWaiting: 16, Waiting: 16, Timeout: time.Millisecond})
		enter := func(from string, i int) error {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.RemoteAddr = from
			who := claims
			if who.UserID != "" {
				who.UserID = fmt.Sprint(who.UserID, i)
			}
			ctx := context.WithValue(t.Context(), requestKey{}, &request{received: r})
			_, err := a.EnterQueue(ctx, q, &Principal{Credential: &Credential{Claims: who}})
			return err
		}
		let := 0
		for i := range 16 {
			if enter(fmt.Sprintf("[2001:db8:1:%x::1]:1", i), i) == nil {
				let++
			}
		}
		if let != 2 {
			t.Errorf("%s: %d of 16 from the networks of a site have a slot", name, let)
		}
		if err := enter("[2001:db8:2::1]:1", 16); err != nil {
			t.Errorf("%s: another site is refused: %v", name, err)
		}
	}
}

func TestACallerWhoGoesIsNoFaultOfTheService(t *testing.T) {
	var log bytes.Buffer
	gone, goAway := context.WithCancel(t.Context())
	ctx := context.WithValue(gone, requestKey{}, &request{serviceLog: slog.New(slog.NewTextHandler(&log, nil))})
	goAway()
	for want, err := range map[int]error{http.StatusServiceUnavailable: fmt.Errorf("waiting: %w", context.Canceled), http.StatusInternalServerError: errors.New("a fault")} {
		log.Reset()
		if p := ProblemOf(ctx, err); p.Status != want || (log.Len() > 0) != (want == http.StatusInternalServerError) {
			t.Errorf("%v is answered with %d and logged as %s", err, p.Status, &log)
		}
	}
}
