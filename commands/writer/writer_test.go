package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

// A repeated request has the same identity and start.
func request(key string) By { return By{Once: NewOnce([]byte(key), time.UnixMilli(0))} }

func TestCheckAndFind(t *testing.T) {
	store, w := newMemory()
	stream := events.FlagStream("t", "k")
	create := commands.CreateFlag{TenantID: "t", Key: "k", Type: events.BooleanFlag}
	find := func(by By) (state.Flag, bool) {
		t.Helper()
		flag, done, found, err := Find(t.Context(), w, by, create)
		if err != nil || done.Repeated != found {
			t.Fatalf("%+v, %v", done, err)
		}
		return flag, found
	}
	if _, err := Check(t.Context(), w, request("a"), create); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), w, request("a"), commands.CreateFlag{TenantID: "t", Key: "k"}); commands.KindOf(err) != commands.Invalid {
		t.Errorf("a flag without a type: %v", err)
	}
	if _, found := find(request("a")); found || len(store.Streams[stream]) > 0 {
		t.Fatalf("before anything is done, %v is there", store.Streams[stream])
	}
	// Earlier checks and searches in the creating request do not change its ids.
	by := request("a")
	if _, err := Check(t.Context(), w, by, create); err != nil {
		t.Fatal(err)
	}
	if _, found := find(by); found {
		t.Error("it is found before it was done")
	}
	if _, done, err := Do(t.Context(), w, by, create); err != nil || done.Repeated {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, _, err := Do(
		t.Context(), w, request("b"), commands.SwitchFlag{FlagRef: testFlag, Environment: testEnvironment, On: true},
	); err != nil {
		t.Fatal(err)
	}
	if flag, found := find(request("a")); !found || flag.Version != 1 || len(flag.Enabled) > 0 {
		t.Errorf("the repeated request finds %+v", flag)
	}
	if _, err := Check(t.Context(), w, request("a"), create); err != nil {
		t.Errorf("the repeated request would be refused: %v", err)
	}
	for name, by := range map[string]By{"another request": request("c"), "one without a key": {}} {
		if flag, err := Check(t.Context(), w, by, create); commands.KindOf(err) != commands.Conflict || flag.Version != 2 {
			t.Errorf("%s may create it: %+v, %v", name, flag, err)
		}
		if _, found := find(by); found {
			t.Errorf("%s finds what it did not do", name)
		}
	}
	if len(store.Streams[stream]) != 2 {
		t.Errorf("the stream holds %v", store.Streams[stream])
	}
}

func TestACommandWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, w := newMemory()
		given(t, w, 0)
		stream := testFlag.Stream()
		refused := func(why string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, _, err := Do(ctx, w, By{}, switchTo(true)); commands.KindOf(err) != commands.TooMany {
				t.Errorf("%s: %v", why, err)
			}
			if len(store.Streams[stream]) != 1 {
				t.Fatalf("%s: it is made all the same", why)
			}
		}
		leave, err := w.enterStream(t.Context(), By{}, testFlag.Tenant(), stream)
		if err != nil {
			t.Fatal(err)
		}
		refused("while another command is on the stream")
		var order []string
		waiting := make(chan struct{})
		pausing := By{Pause: func() func(context.Context) error {
			order = append(order, "pause")
			close(waiting)
			return func(context.Context) error {
				order = append(order, "resume")
				return errors.New("no slot")
			}
		}}
		go func() {
			<-waiting
			leave()
		}()
		if _, _, err := Do(
			t.Context(), w, pausing, switchTo(true),
		); commands.KindOf(err) != commands.TooMany || fmt.Sprint(order) != "[pause resume]" ||
			len(store.Streams[stream]) != 1 {
			t.Errorf("a request that has given its slot back: %v, %v", order, err)
		}
		pausing.Pause = func() func(context.Context) error {
			t.Error("a command that need not wait pauses")
			return nil
		}
		if _, _, err := Do(t.Context(), w, pausing, switchTo(false)); err != nil {
			t.Error(err)
		}
		for range tenantCommands {
			leave, err := w.tenants.enter(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
		}
		refused("while the tenant has as many as it may")
		if _, _, err := Do(
			t.Context(), w, By{}, commands.CreateFlag{TenantID: "other", Key: "k", Type: events.BooleanFlag},
		); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		if _, _, err := Do(t.Context(), w, By{}, commands.RegisterUser{ID: "u"}); err != nil {
			t.Errorf("a person: %v", err)
		}
	})
}

func TestAStreamIsLeftOnceTheChangeCanBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, w := newMemory()
		given(t, w, 0)
		made := func() int {
			store.Mu.Lock()
			defer store.Mu.Unlock()
			return len(store.Streams[testFlag.Stream()]) - 1
		}
		shown := make(chan struct{})
		w.await = func(ctx context.Context, _ events.Position, _ []string) bool {
			select {
			case <-shown:
				return true
			case <-ctx.Done():
				return false
			}
		}
		do := func(on bool) {
			if _, _, err := Do(t.Context(), w, By{}, switchTo(on)); err != nil {
				t.Error(err)
			}
		}
		for i := range 4 {
			go do(i%2 == 0)
			synctest.Wait() // they arrive in this order
		}
		if made() != 1 {
			t.Errorf("%d changes are made before the first can be read", made())
		}
		shown <- struct{}{}
		synctest.Wait()
		if made() != 2 {
			t.Errorf("%d changes are made once the first can be read", made())
		}
		time.Sleep(maxStreamHold)
		synctest.Wait()
		if made() != 2 {
			t.Errorf("%d changes are made while the stream rests", made())
		}
		time.Sleep(maxGateCooldown)
		synctest.Wait()
		if made() != 3 {
			t.Errorf("%d changes are made after the time that one may hold the stream", made())
		}
		close(shown)
		time.Sleep(maxGateCooldown)
		synctest.Wait()
		if made() != 4 {
			t.Errorf("%d changes are made in the end", made())
		}
	})
}

// The wait for a stream may take seconds. A later fact must not seem older.
func TestTheTimeOfAFactIsThatOfItsDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, w := newMemory()
		given(t, w, 0)
		stream := testFlag.Stream()
		leave, err := w.enterStream(t.Context(), By{}, testFlag.Tenant(), stream)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, _, err := Do(t.Context(), w, By{}, switchTo(true))
			done <- err
		}()
		synctest.Wait() // the command waits for its stream
		time.Sleep(time.Second)
		free := time.Now()
		leave()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		list := store.Streams[stream]
		if at := list[len(list)-1].Time; at.Before(free) {
			t.Errorf("the fact is of %v, and was decided on %v later", at, free.Sub(at))
		}
	})
}

// When a call returns, the caller can read its result, or is told that this may take a while; a repeated request too.
func TestAnswersAwaitWhatTheyRestOn(t *testing.T) {
	store, _ := newMemory()
	for name, shown := range map[string]bool{"shown": true, "hidden": false} {
		t.Run(name, func(t *testing.T) {
			var awaited []string
			w := NewWriter(store, func(_ context.Context, position events.Position, names []string) bool {
				awaited = append(awaited, fmt.Sprintf("%d %v", position.Commit, names))
				return shown
			}, NoQuotas{}, time.Now)
			create := commands.CreateFlag{TenantID: "t", Key: name, Type: events.BooleanFlag}
			on := commands.SwitchFlag{FlagRef: commands.FlagRef{TenantID: "t", Key: name}, Environment: testEnvironment, On: true}
			awaits := func(what string, done Done, names string) {
				t.Helper()
				if want := []string{
					fmt.Sprintf("%d %s", store.Commit, names),
				}; !slices.Equal(awaited, want) ||
					done.Stale == shown {
					t.Errorf("%s awaits %v, want %v, and is told to be %+v", what, awaited, want, done)
				}
				awaited = nil
			}
			_, done, err := Do(t.Context(), w, request(name), create)
			if err != nil || done.Repeated {
				t.Fatalf("%+v, %v", done, err)
			}
			awaits("a change", done, "[flag.created]")
			if _, done, err = Do(t.Context(), w, request(name), create); err != nil || !done.Repeated {
				t.Fatalf("%+v, %v", done, err)
			}
			awaits("a repeated change", done, "[flag.]")
			if _, done, _, err = Find(t.Context(), w, request(name), create); err != nil || !done.Repeated {
				t.Fatalf("%+v, %v", done, err)
			}
			awaits("what a repeated request finds", done, "[flag.]")
			if _, done, err = Do(t.Context(), w, By{}, create); commands.KindOf(err) != commands.Conflict {
				t.Fatalf("%+v, %v", done, err)
			}
			awaits("a refusal", done, "[flag.]")
			if _, done, err = Do(t.Context(), w, By{}, on); err != nil {
				t.Fatal(err)
			}
			awaits("a change of a cached state", done, "[flag.enabled]")
			if _, done, err = Do(t.Context(), w, By{}, on); err != nil || done.Position != (events.Position{}) {
				t.Fatalf("%+v, %v", done, err)
			}
			awaits("a change of nothing", done, "[flag.]")
		})
	}
}

func TestEventsBearTheTimeOfTheWritersClock(t *testing.T) {
	store, _ := newMemory()
	clock := time.Date(2026, 5, 1, 14, 0, 0, 123_456_789, time.FixedZone("", 2*60*60))
	w := NewWriter(store, NoWait, NoQuotas{}, func() time.Time { return clock })
	given(t, w, 0)
	if got, want := store.Streams[testFlag.Stream()][0].Time, time.Date(
		2026, 5, 1, 12, 0, 0, 123_000_000, time.UTC,
	); got != want {
		t.Errorf("the event is of %v, want %v", got, want)
	}
}

// A person who declines an invitation acts as the invited person, not as the account of the request.
func TestThePersonWhoDeclinesIsTheInvitedOne(t *testing.T) {
	decline := commands.DeclineInvitation{RemoveMember: commands.RemoveMember{TenantRef: commands.TenantRef{TenantID: "t"}, UserID: "q"}}
	by := By{Actor: events.Actor{Kind: events.UserActor, ID: "ada"}}.of(decline)
	if by.Actor != (events.Actor{Kind: events.InvitedActor, ID: "q"}) {
		t.Errorf("the actor is %v", by.Actor)
	}
}
