package snapshot

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"flagledger/events"
)

// scribe appends to the log that a snapshot follows.
type scribe struct {
	*Snapshot
	at events.Position
}

func newScribe() *scribe {
	s := &scribe{Snapshot: New(Options{})}
	for _, tenant := range []string{"t", "u"} {
		s.page(events.TenantStream(tenant), events.TenantCreated{ID: tenant},
			events.EnvironmentAdded{Environment: production}, events.MemberAdded{UserID: "m"})
	}
	return s
}

// page applies a page of facts of one stream to the snapshot.
func (s *scribe) page(stream string, facts ...events.Fact) {
	var page events.Page
	for i, fact := range facts {
		s.at.Commit++
		e := recorded(stream, events.Revision(i+1), fact)
		e.Position = s.at
		page.Events = append(page.Events, e)
	}
	page.Next = s.at
	s.apply(page, slog.New(slog.DiscardHandler))
}

func (s *scribe) flag(tenant, key string, facts ...events.Fact) {
	s.page(events.FlagStream(tenant, key), facts...)
}

func (s *scribe) listen(tenant, environment string) *Listener {
	t, _ := s.Tenant(tenant)
	return s.Listen(t, environment, 10)
}

// heard is an update in short: the keys of the changed flags, with ? first for a gap.
func heard(l *Listener) string {
	update := l.Next()
	var keys []string
	if update.Gap {
		keys = append(keys, "?")
	}
	for _, c := range update.Changes {
		keys = append(keys, c.Key)
	}
	return strings.Join(keys, ",")
}

func woken(more <-chan struct{}) bool {
	select {
	case <-more:
		return true
	default:
		return false
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: heard %q, want %q", what, got, want)
	}
}

func TestAListenerHearsOfItsTenantAndEnvironment(t *testing.T) {
	s := newScribe()
	s.flag("t", "before", made(events.BooleanFlag, "false"))
	l, other, all := s.listen("t", production.ID), s.listen("t", "e2"), s.listen("t", "")
	defer l.Close()
	defer other.Close()
	defer all.Close()
	expect(t, "before anything happens", heard(l), "")

	s.flag("t", "a", made(events.BooleanFlag, "false"), events.FlagEnabled{Environment: production})
	s.flag("u", "x", made(events.BooleanFlag, "false"))
	s.flag("t", "a", events.RulesChanged{Environment: events.EnvironmentRef{ID: "e2"}})
	s.flag("t", "b", events.FlagDisabled{Environment: production}, events.FallthroughChanged{Environment: production},
		events.VariationAdded{})
	expect(t, "in production", heard(l), "a,a,b,b,b")
	expect(t, "elsewhere", heard(other), "a,a,b")
	expect(t, "everywhere", heard(all), "a,a,a,b,b,b")
	expect(t, "a second time", heard(l), "")

	l.Resume(events.Position{})
	s.flag("t", "a", events.FlagDeleted{})
	update := l.Next()
	last := update.Changes[len(update.Changes)-1]
	if last.Key != "a" || !last.Deleted || last.Position != s.at || update.Position != s.at || last.Version != 1 {
		t.Errorf("of a flag that is deleted it hears %+v at %v", last, update.Position)
	}
}

func TestAListenerIsWoken(t *testing.T) {
	s := newScribe()
	l := s.listen("t", production.ID)
	defer l.Close()
	for what, happens := range map[string]func(){
		"a flag changes":              func() { s.flag("t", "k", made(events.BooleanFlag, "false")) },
		"another environment changes": func() { s.flag("t", "k", events.FlagEnabled{Environment: events.EnvironmentRef{ID: "e2"}}) },
		"a member goes":               func() { s.page("tenant-t", events.MemberRoleChanged{UserID: "m", To: events.ViewerRole}) },
		"a session ends": func() {
			s.page("user-m", events.SessionEnded{UserID: "m", SessionID: "s", Until: time.Now().Add(time.Hour)})
		},
	} {
		more := l.Next().More
		if woken(more) {
			t.Errorf("%s: woken before", what)
		}
		if happens(); !woken(more) {
			t.Errorf("%s: not woken", what)
		}
	}
	more := l.Next().More
	s.flag("u", "k", made(events.BooleanFlag, "false"))
	s.page("tenant-u", events.TenantUpdated{})
	s.page("user-n", events.UserRegistered{ID: "n"})
	if woken(more) {
		t.Error("woken by what does not concern it")
	}
}

func TestListenersOfATenantAreLimited(t *testing.T) {
	s := newScribe()
	tenant, _ := s.Tenant("t")
	first, second := s.Listen(tenant, production.ID, 2), s.Listen(tenant, production.ID, 2)
	if first == nil || second == nil || s.Listen(tenant, production.ID, 2) != nil {
		t.Fatal("other than two may listen")
	}
	if other := s.listen("u", production.ID); other == nil {
		t.Error("another tenant is limited too")
	}
	first.Close()
	if s.Listen(tenant, production.ID, 2) == nil {
		t.Error("no other may listen once one has closed")
	}
	second.Close()
	s.flag("t", "k", made(events.BooleanFlag, "false"))
}

func TestAPositionOfAnotherLogLeavesAGap(t *testing.T) {
	s := newScribe()
	s.flag("t", "k", made(events.BooleanFlag, "false"))
	l := s.listen("t", production.ID)
	defer l.Close()
	l.Resume(events.Position{Commit: s.at.Commit + 1})
	expect(t, "from a position that the snapshot has not reached", heard(l), "?")
	s.flag("t", "next", made(events.BooleanFlag, "false"))
	expect(t, "then", heard(l), "next")
}

// A resuming listener gets exactly what it missed, or a gap if the ring no longer holds it.
func TestResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScribe()
		s.changes.size = rapid.IntRange(1, 8).Draw(t, "size")
		type change struct {
			at          events.Position
			tenant, key string
			everywhere  bool
		}
		var log []change
		for i := range rapid.IntRange(0, 30).Draw(t, "changes") {
			c := change{
				tenant:     rapid.SampledFrom([]string{"t", "u"}).Draw(t, "tenant"),
				key:        fmt.Sprint(i),
				everywhere: rapid.Bool().Draw(t, "everywhere"),
			}
			fact := events.Fact(events.FlagEnabled{Environment: events.EnvironmentRef{ID: "e2"}})
			if c.everywhere {
				fact = events.FlagUpdated{}
			}
			s.flag(c.tenant, c.key, fact)
			c.at = s.at
			log = append(log, c)
			if rapid.Bool().Draw(t, "something else") {
				s.page("user-n", events.UserRegistered{ID: "n"})
			}
		}
		after := events.Position{Commit: rapid.Uint64Range(0, s.at.Commit).Draw(t, "after")}
		l := s.listen("t", production.ID)
		defer l.Close()
		l.Resume(after)
		update := l.Next()

		held := max(0, len(log)-s.changes.size)
		var missed, forgotten []string
		for i, c := range log {
			switch {
			case c.at.Compare(after) <= 0 || c.tenant != "t":
			case i < held:
				forgotten = append(forgotten, c.key)
			case c.everywhere:
				missed = append(missed, c.key)
			}
		}
		var got []string
		for _, c := range update.Changes {
			got = append(got, c.Key)
		}
		if len(forgotten) > 0 && !update.Gap {
			t.Fatalf("%v are not heard of, and no gap", forgotten)
		}
		if complete := held == 0 || log[held-1].at.Compare(after) <= 0; complete && update.Gap {
			t.Fatal("a gap although the ring holds all")
		}
		if fmt.Sprint(got) != fmt.Sprint(missed) {
			t.Fatalf("heard %v, missed %v", got, missed)
		}
	})
}

func TestTheNameOfTheLog(t *testing.T) {
	name := func(engine, first string) string {
		s := New(Options{})
		s.engine = engine
		s.apply(events.Page{Events: []events.Recorded{{Event: events.Event{ID: uuid.MustParse(first)}}}},
			slog.New(slog.DiscardHandler))
		return s.LogName()
	}
	const first = "0198c0de-0000-7000-8000-5c2f1e9a7b30"
	here, there := name("postgres", first), name("postgres", first)
	if here != there {
		t.Error("one log has two names")
	}
	if here == name("eventstore", first) || here == name("postgres", "0198c0de-0000-7000-8000-5c2f1e9a7b31") {
		t.Error("two logs have one name")
	}
}

// The events of an append are applied in one piece: an evaluation between them would see a part of the change.
func TestRunsHaveTheEventsOfOneStream(t *testing.T) {
	var list []events.Recorded
	for _, stream := range []string{"flag-t.a", "flag-t.a", "flag-t.b", "flag-t.a"} {
		list = append(list, events.Recorded{Stream: stream})
	}
	var got []int
	for run := range runs(list) {
		got = append(got, len(run))
	}
	if want := []int{2, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("the pieces have %v events, want %v", got, want)
	}
}

// A wait for a change of a tenant ends once the snapshot holds it, also if it changes no flag. A listener that resumes
// there has missed nothing.
func TestAWaitEndsForATenantsOwnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScribe()
		tenant, _ := s.Tenant("t")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, fact := range []events.Fact{
			events.EvaluationKeyAdded{KeyID: "key", Kind: events.ServerKey, Environment: production},
			events.EnvironmentAdded{Environment: events.EnvironmentRef{ID: "e2"}},
			events.EvaluationKeyRemoved{KeyID: "key"},
		} {
			began, next, ended := time.Now(), events.Position{Commit: s.at.Commit + 1}, make(chan bool)
			go func() {
				s.Await(ctx, tenant, next)
				l := s.listen("t", production.ID)
				defer l.Close()
				l.Resume(next)
				ended <- l.Next().Gap
			}()
			synctest.Wait()
			s.page(events.TenantStream("t"), fact)
			if gap := <-ended; gap || time.Since(began) > 0 {
				t.Errorf("%s: the wait ends after %v, and a gap is %v", fact.StoredName(), time.Since(began), gap)
			}
		}
	})
}

func TestListenersTakeTurns(t *testing.T) {
	s := newScribe()
	tenant, _ := s.Tenant("t")
	const listeners = 1000
	var list []*Listener
	for range listeners {
		list = append(list, s.Listen(tenant, production.ID, listeners))
	}
	var last time.Duration
	for _, l := range list {
		last = max(last, l.Next().Turn)
		defer l.Close()
	}
	if last < listeners*timePerListener/2 || last > listeners*timePerListener {
		t.Errorf("the last of %d has its turn after %v", listeners, last)
	}
	alone := s.listen("u", production.ID)
	defer alone.Close()
	if turn := alone.Next().Turn; turn > timePerListener {
		t.Errorf("one alone has its turn after %v", turn)
	}
}
