package writer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/eventstest"
	"flagledger/events/state"
)

// breaking is a store whose reads fail after a number of events.
type breaking struct {
	*eventstest.Memory
	after int
}

// Read implements events.Store.
func (b breaking) Read(ctx context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		n := 0
		for r, err := range b.Memory.Read(ctx, stream, from) {
			if n++; n > b.after {
				yield(events.Recorded{}, events.ErrUnavailable)
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// A stream that folds longer than a command may take would be locked for ever if each command started at the first
// event.
func TestFoldingGoesOnWhereItBrokeOff(t *testing.T) {
	store, w := newMemory()
	given(t, w, 25)
	other := NewWriter(breaking{store, 10}, NoWait, NoQuotas{}, time.Now)
	flag, err := Check(t.Context(), other, By{}, switchTo(true))
	if err != nil || flag.Version != 26 {
		t.Errorf("the flag is read up to version %d, %v; want 26", flag.Version, err)
	}
}

// Foreign events in the log cause an error, not a panic.
func TestStreamsThatNobodyHereWroteDoNotPanic(t *testing.T) {
	for name, test := range map[string]struct {
		fact   events.Fact
		refuse bool
	}{
		"a fact of another kind":       {events.TenantDeleted{}, true},
		"a flag that has no beginning": {events.FlagEnabled{Environment: testEnvironment}, false},
		"rules without a flag":         {events.RulesChanged{Environment: testEnvironment}, false},
		"a fallthrough without one":    {events.FallthroughChanged{Environment: testEnvironment, To: &events.Serve{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			store, w := newMemory()
			if _, err := store.Append(
				t.Context(), testFlag.Stream(), 0, []events.Event{{ID: uuid.New(), Fact: test.fact}},
			); err != nil {
				t.Fatal(err)
			}
			_, _, err := Do(t.Context(), w, By{}, switchTo(true))
			if told := err != nil &&
				strings.Contains(err.Error(), "is no fact of such a stream"); told != test.refuse ||
				!told && commands.KindOf(err) != commands.NotFound {
				t.Errorf("got %v", err)
			}
		})
	}
}

// pairOfNodes is a node that caches states and one that does not, each over its own log.
type pairOfNodes struct{ keeping, plain *Writer }

// returned holds the state and the result of a command.
type returned struct {
	state any
	then  string
}

var equalStates = cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty(), ignoreTimes}

var ignoreTimes = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type().String() == "time.Time" }, cmp.Ignore())

// Two nodes that write in turn make the same facts and answers with and without cached states.
func TestKeptStatesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keeping, first := newMemory()
		plain, reference := newMemory()
		reference.states = nil
		nodes := []*Writer{first, newWriter(keeping)}
		var all []returned
		create := commands.CreateTenant{ID: "t", Name: "n", Creator: "u0", Environments: []events.EnvironmentRef{testEnvironment}}
		all = append(all, both[state.Tenant](t, pairOfNodes{first, reference}, By{}, create))
		for i := range rapid.IntRange(1, 40).Draw(t, "commands") {
			pair := pairOfNodes{rapid.SampledFrom(nodes).Draw(t, "node"), reference}
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				pair.keeping.states.InvalidateAll()
			}
			by := By{Actor: events.Actor{Kind: events.UserActor, ID: "u"}}
			switch rapid.IntRange(0, 4).Draw(t, "stream") {
			case 0:
				all = append(all, both(t, pair, by, drawFlagCommand(t, i)))
			case 1:
				all = append(all, both(t, pair, by, drawTenantCommand(t, i)))
			case 2:
				all = append(all, both(t, pair, by, drawUserCommand(t, i)))
			case 3:
				all = append(all, both(t, pair, by, drawInvitationCommand(t, i)))
			default:
				all = append(all, both(t, pair, by, drawProjectCommand(t)))
			}
		}
		if diff := cmp.Diff(factsOf(plain), factsOf(keeping), equalStates); diff != "" {
			t.Fatalf("the facts differ (-without +with cached states):\n%s", diff)
		}
		for _, r := range all {
			if now := fmt.Sprintf("%+v", r.state); now != r.then {
				t.Fatalf("a state that was returned has changed from\n%s to\n%s", r.then, now)
			}
		}
	})
}

// both runs or checks a command with and without cached states.
func both[S any, P state.State[S]](t *rapid.T, nodes pairOfNodes, by By, cmd commands.Command[S]) returned {
	check := rapid.IntRange(0, 4).Draw(t, "check") == 0
	run := func(w *Writer) (s S, done Done, err error) {
		if check {
			s, err = Check[S, P](t.Context(), w, by, cmd)
			return s, done, err
		}
		return Do[S, P](t.Context(), w, by, cmd)
	}
	want, wantDone, wantErr := run(nodes.plain)
	got, gotDone, gotErr := run(nodes.keeping)
	if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) || commands.KindOf(wantErr) != commands.KindOf(gotErr) || wantDone != gotDone {
		t.Fatalf("%T is answered with %+v, %v; without cached states %+v, %v", cmd, gotDone, gotErr, wantDone, wantErr)
	}
	if diff := cmp.Diff(want, got, equalStates); diff != "" {
		t.Fatalf("%T leaves another state (-without +with cached states):\n%s", cmd, diff)
	}
	return returned{got, fmt.Sprintf("%+v", got)}
}

func factsOf(m *eventstest.Memory) map[string][]events.Fact {
	facts := map[string][]events.Fact{}
	for stream, list := range m.Streams {
		for _, r := range list {
			facts[stream] = append(facts[stream], r.Fact)
		}
	}
	return facts
}

func drawFlagCommand(t *rapid.T, i int) commands.Command[state.Flag] {
	key := rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key")
	ref := commands.FlagRef{TenantID: "t", Key: key}
	if rapid.IntRange(0, 5).Draw(t, "with a version") == 0 {
		ref.IfVersions = []events.Revision{events.Revision(rapid.IntRange(1, 10).Draw(t, "version"))}
	}
	variation := fmt.Sprintf("v%d", rapid.IntRange(0, 5).Draw(t, "variation"))
	text := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "text")
	serve := &commands.NewServe{Value: rawJSON("true")}
	all := []commands.Command[state.Flag]{
		commands.CreateFlag{
			TenantID:   "t",
			Key:        key,
			ID:         fmt.Sprint(i),
			Type:       events.BooleanFlag,
			Variations: []commands.NewVariation{{ID: "v0", Name: "zero", Value: rawJSON("true")}},
		},
		commands.CreateFlag{TenantID: "t", Key: key, ID: fmt.Sprint(i), Type: events.BooleanFlag, Tags: []string{"x"}},
		commands.UpdateFlag{FlagRef: ref, Name: &text, Tags: &[]string{text}},
		commands.SwitchFlag{FlagRef: ref, Environment: testEnvironment, On: rapid.Bool().Draw(t, "on")},
		commands.AddVariation{FlagRef: ref, Variation: commands.NewVariation{ID: variation, Name: variation, Value: rawJSON("false")}},
		commands.UpdateVariation{FlagRef: ref, ID: variation, Name: &text, Weight: new(events.Weight(i))},
		commands.RemoveVariation{FlagRef: ref, ID: variation, Environments: []events.EnvironmentRef{testEnvironment}},
		commands.SetRules{FlagRef: ref, Environment: testEnvironment, Rules: []commands.NewRule{
			{NewID: fmt.Sprint(i), Name: text, Conditions: []events.Condition{}, Serve: serve},
			{NewID: fmt.Sprint("second ", i), Conditions: []events.Condition{}, Serve: &commands.NewServe{VariationID: &variation}},
		}[:rapid.IntRange(0, 2).Draw(t, "rules")]},
		commands.SetFallthrough{FlagRef: ref, Environment: testEnvironment, Serve: serve},
		commands.SetFallthrough{FlagRef: ref, Environment: testEnvironment, Unset: true},
		commands.DeleteFlag{FlagRef: ref},
	}
	return rapid.SampledFrom(all).Draw(t, "command")
}

func drawTenantCommand(t *rapid.T, i int) commands.Command[state.Tenant] {
	ref, user := commands.TenantRef{TenantID: "t"}, fmt.Sprintf("u%d", rapid.IntRange(0, 3).Draw(t, "user"))
	role := rapid.SampledFrom([]events.Role{events.AdminRole, events.ViewerRole}).Draw(t, "role")
	environment := rapid.SampledFrom([]string{"production", "staging", "qa"}).Draw(t, "environment")
	all := []commands.Command[state.Tenant]{
		commands.CreateTenant{ID: "t", Name: "n", Creator: "u0", Environments: []events.EnvironmentRef{testEnvironment}},
		commands.UpdateTenant{TenantRef: ref, Name: new(fmt.Sprint(i % 3))},
		commands.AddEnvironment{TenantRef: ref, Environment: events.EnvironmentRef{ID: fmt.Sprint(i), Name: environment}},
		commands.DeleteEnvironment{TenantRef: ref, Name: environment},
		commands.InviteMember{TenantRef: ref, ID: user, Role: role},
		commands.JoinTenant{TenantRef: ref, ID: user, UserID: "joined"},
		commands.ChangeRole{TenantRef: ref, UserID: user, Role: role},
		commands.RemoveMember{TenantRef: ref, UserID: user},
		commands.CreateClient{TenantRef: ref, ID: user, Name: "n", Scopes: []string{"flags:read"}},
		commands.RotateSecret{ClientRef: commands.ClientRef{TenantRef: ref, ID: user}},
		commands.DeleteClient{ClientRef: commands.ClientRef{TenantRef: ref, ID: user}},
		commands.DeleteTenant{TenantRef: ref},
	}
	return rapid.SampledFrom(all).Draw(t, "command")
}

func drawProjectCommand(t *rapid.T) commands.Command[state.Project] {
	ref, name := commands.ProjectRef{TenantID: "t", ID: "p"}, rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "name")
	return rapid.SampledFrom([]commands.Command[state.Project]{
		commands.CreateProject{ID: "p", TenantID: "t", Name: name},
		commands.UpdateProject{ProjectRef: ref, Name: &name},
		commands.UpdateProject{ProjectRef: commands.ProjectRef{TenantID: "other", ID: "p"}, Name: &name},
		commands.DeleteProject{ProjectRef: ref, FlagCount: rapid.IntRange(0, 1).Draw(t, "flags")},
	}).Draw(t, "command")
}

// timeOf returns the time of the ith command.
func timeOf(i int) time.Time { return time.Date(2026, 3, 14, i, 0, 0, 0, time.UTC) }

func drawUserCommand(t *rapid.T, i int) commands.Command[state.User] {
	id := rapid.SampledFrom([]string{"u", "v"}).Draw(t, "user")
	ref, session := commands.UserRef{UserID: id}, rapid.SampledFrom([]string{"s1", "s2", "s3"}).Draw(t, "session")
	role := rapid.SampledFrom([]events.PlatformRole{"", events.PlatformViewer, events.PlatformAdmin, events.SuperUser}).
		Draw(t, "role")
	yes := rapid.Bool().Draw(t, "listed or known")
	return rapid.SampledFrom([]commands.Command[state.User]{
		commands.RegisterUser{ID: id, Provider: "password"},
		commands.RegisterUser{ID: id, Provider: "password"}, // twice, as all but the sessions need it
		commands.EndSession{UserID: id, SessionID: session, Until: timeOf(i)},
		commands.EndSessions{UserID: id, Before: timeOf(i), Except: session},
		commands.ChangePlatformRole{UserRef: ref, Role: role, Listed: yes},
		commands.GrantInvited{UserRef: ref, Role: role, Listed: yes, AcceptedAt: time.Now().Add(time.Hour)},
		commands.DeactivateUser{UserRef: ref},
		commands.ReactivateUser{UserRef: ref},
		commands.EraseUser{UserRef: ref, Known: yes},
	}).Draw(t, "command")
}

func drawInvitationCommand(t *rapid.T, i int) commands.Command[state.Invitation] {
	ref := commands.InvitationRef{
		ID:  rapid.SampledFrom([]string{"i", "j"}).Draw(t, "invitation"),
		Now: timeOf(i * rapid.SampledFrom([]int{1, 24}).Draw(t, "hours")),
	}
	create := commands.CreateInvitation{
		ID:             ref.ID,
		Role:           events.PlatformAdmin,
		Now:            ref.Now,
		AlreadyPending: rapid.IntRange(0, 4).Draw(t, "pending") == 0,
	}
	return rapid.SampledFrom([]commands.Command[state.Invitation]{
		create, create, commands.ResendInvitation{InvitationRef: ref}, commands.RevokeInvitation{InvitationRef: ref}, commands.AcceptInvitation{InvitationRef: ref, UserID: "u"},
	}).Draw(t, "command")
}

func switchTo(on bool) commands.SwitchFlag {
	return commands.SwitchFlag{FlagRef: testFlag, Environment: testEnvironment, On: on}
}

// given creates the flag and toggles it n times.
func given(t *testing.T, w *Writer, switches int) {
	t.Helper()
	if _, _, err := Do(t.Context(), w, By{}, commands.CreateFlag{TenantID: "t", Key: "k", Type: events.BooleanFlag}); err != nil {
		t.Fatal(err)
	}
	for i := range switches {
		if _, _, err := Do(t.Context(), w, By{}, switchTo(i%2 == 0)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAChangeReadsOnlyWhatItMust(t *testing.T) {
	store, w := newMemory()
	given(t, w, 10)
	reading := func(what string, w *Writer, by By, cmd commands.SwitchFlag, want int) {
		t.Helper()
		store.EventsRead = 0
		if _, _, err := Do(t.Context(), w, by, cmd); err != nil {
			t.Fatal(err)
		}
		if store.EventsRead != want {
			t.Errorf("%s reads %d events, want %d", what, store.EventsRead, want)
		}
	}
	reading("a change", w, By{}, switchTo(true), 0)
	reading("a change of nothing", w, By{}, switchTo(true), 1) // the last event again
	other := newWriter(store)
	reading("a change on another node", other, By{}, switchTo(false), 12)
	reading("a change of nothing after that", w, By{}, switchTo(false), 2)
	reading("a change on the other node", other, By{}, switchTo(true), 0)
	reading("a change that another node made before", w, By{}, switchTo(true), 2)
	first := request("a")
	first.Once.AssumeFirstUntil(time.Now().Add(time.Hour))
	reading("the first attempt of a request with a key", w, first, switchTo(false), 0)
	reading("a repeated one", w, request("a"), switchTo(false), 1)
	reading("one that was never carried out", w, request("b"), switchTo(true), 1)
	reading("the first one once more, after another", w, request("a"), switchTo(false), 1+16)
}

// holding is a store whose reads block and report their streams.
type holding struct {
	*eventstest.Memory
	begun   chan string
	proceed chan struct{}
}

// Read implements events.Store.
func (h holding) Read(ctx context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	h.begun <- stream
	<-h.proceed
	return h.Memory.Read(ctx, stream, from)
}

// creatorOf makes a the creator of the tenants a1, a2 and so on.
type creatorOf struct{ NoQuotas }

func (creatorOf) Limits(tenantID string) TenantLimits {
	return TenantLimits{Creator: strings.TrimRight(tenantID, "0123456789")}
}

// A store has few connections for reads of streams: the tenants of one person use one of them at a time.
func TestOneStreamOfACreatorIsReadFromItsBeginningAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := newMemory()
		held := holding{store, make(chan string, 10), make(chan struct{})}
		w := NewWriter(held, NoWait, creatorOf{}, time.Now)
		check := func(tenantID, key string) {
			go func() {
				if _, err := Check(t.Context(), w, By{}, commands.DeleteFlag{FlagRef: commands.FlagRef{TenantID: tenantID, Key: key}}); commands.KindOf(err) != commands.NotFound {
					t.Error(err)
				}
			}()
			synctest.Wait() // it reads its stream, or waits
		}
		check("greedy1", "k")
		for i := range 4 {
			check(fmt.Sprint("greedy", i), fmt.Sprint("l", i))
		}
		check("quiet", "k")
		var read []string
		for range len(held.begun) {
			read = append(read, <-held.begun)
		}
		if want := []string{events.FlagStream("greedy1", "k"), events.FlagStream("quiet", "k")}; !slices.Equal(read, want) {
			t.Errorf("%q are read at once, want %q", read, want)
		}
		close(held.proceed)
		synctest.Wait()
		if len(held.begun) != 4 || len(w.folds.keys) != 0 {
			t.Errorf("%d further streams are read, and %d keys are remembered", len(held.begun), len(w.folds.keys))
		}
	})
}

func TestALogThatIsNotTheOneOfTheKeptState(t *testing.T) {
	for name, replace := range map[string]func(*eventstest.Memory, string){
		"the stream is gone": func(m *eventstest.Memory, stream string) { delete(m.Streams, stream) },
		"it is shorter":      func(m *eventstest.Memory, stream string) { m.Streams[stream] = m.Streams[stream][:2] },
		"it is another": func(m *eventstest.Memory, stream string) {
			last := &m.Streams[stream][4]
			last.ID, last.Fact = uuid.New(), events.FlagEnabled{Environment: testEnvironment}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, w := newMemory()
			given(t, w, 4)
			replace(store, testFlag.Stream())
			want := len(store.Streams[testFlag.Stream()])
			for range 2 {
				flag, _, err := Do(t.Context(), w, By{}, switchTo(false)) // no change if the flag is off
				if on := foldOf[state.Flag](factsOf(store)[testFlag.Stream()]).Enabled.Has(testEnvironment.ID); on {
					t.Error("the flag is on")
				}
				if want == 0 {
					if commands.KindOf(err) != commands.NotFound {
						t.Errorf("got %+v, %v", flag, err)
					}
					continue
				}
				if err != nil || flag.Enabled.Has(testEnvironment.ID) || int(flag.Version) != len(store.Streams[testFlag.Stream()]) {
					t.Errorf("got %+v, %v", flag, err)
				}
			}
			if _, _, err := Do(
				t.Context(), w, By{}, commands.CreateFlag{TenantID: "t", Key: "k", Type: events.BooleanFlag},
			); (want == 0) != (err == nil) {
				t.Errorf("creating it: %v", err)
			}
		})
	}
}

// A command fails if an event cannot be decoded, whether the state before it is cached or not.
func TestAnEventThatCannotBeDecoded(t *testing.T) {
	bad := errors.New("unknown type")
	for name, kept := range map[string]bool{"with a cached state": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			store, w := newMemory()
			given(t, w, 3)
			given := store.Streams[testFlag.Stream()]
			store.Streams[testFlag.Stream()] = append(given,
				events.Recorded{Stream: testFlag.Stream(), Revision: 5, Err: bad, Event: events.Event{ID: uuid.New()}})
			if !kept {
				w = newWriter(store)
			}
			for range 2 {
				if _, _, err := Do(t.Context(), w, By{}, switchTo(false)); !errors.Is(err, bad) {
					t.Errorf("got %v", err)
				}
				if _, err := Check(t.Context(), w, By{}, switchTo(false)); !errors.Is(err, bad) {
					t.Errorf("checking it: %v", err)
				}
			}
			if len(store.Streams[testFlag.Stream()]) != 5 {
				t.Error("something was appended")
			}
		})
	}
}

func TestKeptStatesAreBounded(t *testing.T) {
	_, w := newMemory()
	w.states = newStates(100_000)
	for i := range 50 {
		create := commands.CreateFlag{
			TenantID:     "t",
			Key:          fmt.Sprint("k", i),
			Type:         events.JSONFlag,
			DefaultValue: rawJSON(`"` + strings.Repeat("x", 10_000) + `"`),
		}
		if _, _, err := Do(t.Context(), w, By{}, create); err != nil {
			t.Fatal(err)
		}
	}
	w.states.CleanUp()
	if size := w.states.WeightedSize(); size == 0 || size > 100_000 {
		t.Errorf("it keeps %d bytes", size)
	}
	huge := state.Flag{FlagCreated: events.FlagCreated{Description: strings.Repeat("x", 2*maxStates)}}
	cacheState(w, "huge", huge, lastEvent{revision: 1})
	w.states.CleanUp()
	if size := w.states.WeightedSize(); size > 100_000 {
		t.Errorf("it keeps %d bytes", size)
	}
}

// Concurrent changes of the same flags on two nodes lose no change and never see a half-changed state.
func TestChangesOfTheSameFlagsAtOnce(t *testing.T) {
	store, w := newMemory()
	nodes := []*Writer{w, newWriter(store)}
	const callers, each = 8, 30
	for _, key := range []string{"k", "l"} {
		if _, _, err := Do(t.Context(), w, By{}, commands.CreateFlag{TenantID: "t", Key: key, Type: events.BooleanFlag}); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	for caller := range callers {
		running.Go(func() {
			for i := range each {
				ref := commands.FlagRef{TenantID: "t", Key: []string{"k", "l"}[i%2]}
				environment := events.EnvironmentRef{ID: fmt.Sprint(caller), Name: "e"}
				flag, _, err := Do(t.Context(), nodes[caller%2], By{},
					commands.SwitchFlag{FlagRef: ref, Environment: environment, On: i/2%2 == 0})
				if err != nil {
					t.Error(err)
					return
				}
				if flag.Enabled.Has(environment.ID) != (i/2%2 == 0) {
					t.Errorf("the flag is %v in the environment after it was switched to %v", flag.Enabled.Has(environment.ID), i/2%2 == 0)
				}
			}
		})
	}
	running.Wait()
	if n := len(store.Streams[testFlag.Stream()]) + len(store.Streams[events.FlagStream("t", "l")]); n != 2+callers*each {
		t.Errorf("there are %d facts, want %d", n, 2+callers*each)
	}
	for _, w := range nodes {
		if len(w.streams.keys)+len(w.tenants.keys) > 0 {
			t.Errorf("keys that are not in use are remembered: %v, %v", w.streams.keys, w.tenants.keys)
		}
	}
}
