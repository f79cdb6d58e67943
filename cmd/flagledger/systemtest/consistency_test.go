package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// views are all views of a flag's facts over one database: commands' states, lists, evaluations and API responses.
type views struct {
	writer   *writer.Writer
	store    events.Store
	progress *projections.Progress
	read     *queries.Queries
	live     *snapshot.Snapshot
	api      *nodetest.Client
}

func newViews(t *testing.T) views {
	t.Helper()
	api := nodetest.New(t).SignUp("tester@example.com")
	url, log := api.Service.DatabaseURL, nodetest.Log(t)
	pool, err := node.OpenPool(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	v := views{store: api.Service.Store(), progress: projections.NewProgress(models.All(), 0), live: snapshot.New(snapshot.Options{}), api: api}
	v.read = queries.New(pool, v.store, v.progress.Wait, nil)
	v.writer = writer.NewWriter(v.store, writer.NoWait, writer.NoQuotas{}, time.Now) // the test waits once in a while
	run(t, func(ctx context.Context) { v.live.Run(ctx, v.store, v.progress.SnapshotReached, log) })
	run(t, func(ctx context.Context) { v.progress.Listen(ctx, url, v.store, log) })
	create := commands.CreateTenant{ID: "t", Name: "Tenant", Creator: api.UserID, Environments: environments}
	_, done, err := writer.Do(t.Context(), v.writer, tester, create)
	if err != nil {
		t.Fatal(err)
	}
	v.wait(t, done.Position)
	api.Tenant = "t"
	api.Service.Eventually("the service knows the tenant",
		func() bool { return api.Call("GET", "/api/v1/flags", nil).Status == 200 })
	return v
}

// run runs a function until the test ends.
func run(t *testing.T, part func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { part(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// wait waits until the read models and the snapshot hold a position.
func (v views) wait(t rapid.TB, position events.Position) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !v.progress.Wait(context.Background(), position, []string{""}); {
		if time.Now().After(deadline) {
			t.Fatalf("position %s is not shown", position)
		}
	}
}

var (
	tester       = writer.By{Actor: events.Actor{Kind: events.UserActor, ID: "tester"}}
	environments = []events.EnvironmentRef{{ID: "e1", Name: "production"}, {ID: "e2", Name: "development"}}
)

// After any change of a flag, all views show the same flag, and so do views rebuilt from the facts.
func TestAllViewsOfAFlagAgree(t *testing.T) { nodetest.BothEngines(t, testAllViewsOfAFlagAgree) }

func testAllViewsOfAFlagAgree(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	flags := map[string]state.Flag{}
	var refusals, matches int64
	rapid.Check(t, func(rt *rapid.T) {
		key := fmt.Sprintf("f%d", len(flags))
		var flag state.Flag
		var last events.Position
		do := func(cmd commands.Command[state.Flag]) {
			after, done, err := writer.Do(t.Context(), v.writer, tester, cmd)
			switch {
			case commands.KindOf(err) != commands.Internal: // refused
				refusals++
				fallthrough
			case err == nil && done.Position == (events.Position{}): // nothing to do
				if diff := cmp.Diff(flag, after, cmpopts.EquateEmpty()); diff != "" {
					rt.Fatalf("the stream folds to another state than the command before it returned (-returned +folded):\n%s", diff)
				}
			case err != nil:
				rt.Fatalf("the command failed: %v", err)
			default:
				flag, last = after, done.Position
			}
			flags[key] = flag
		}
		for range rapid.IntRange(1, 15).Draw(rt, "commands") {
			do(drawCommand(rt, key, flag))
		}
		if ref := (commands.FlagRef{TenantID: "t", Key: key}); rapid.Bool().Draw(rt, "on in the end") {
			if flag.Exists {
				do(drawRules(rt, flag, ref, environments[0]))
			}
			do(commands.UpdateFlag{FlagRef: ref, Status: new(events.ActiveFlag)})
			do(commands.SwitchFlag{FlagRef: ref, Environment: environments[0], On: true})
		}
		v.wait(rt, last)
		v.checkRows(rt, key, flag)
		matches += v.checkEvaluation(rt, key, flag)
		v.checkAPI(t, rt, key, flag)
	})
	served := v.serveByARule(t)
	flags["served"] = served
	matches += v.checkEvaluation(t, "served", served)
	if t.Logf("%d flags, %d commands refused, %d rules matched", len(flags), refusals, matches); matches == 0 {
		t.Error("no rule matched")
	}
	rebuilt := v
	rebuilt.live = snapshot.New(snapshot.Options{})
	run(t, func(ctx context.Context) { rebuilt.live.Run(ctx, v.store, func(events.Page) {}, nodetest.Log(t)) })
	if err := projections.Rebuild(
		t.Context(), v.api.Service.DatabaseURL, v.store, models.All(), projections.RebuildOptions{}, nodetest.Log(t),
	); err != nil {
		t.Fatal(err)
	}
	<-rebuilt.live.Ready()
	for key, flag := range flags {
		rebuilt.checkRows(t, key, flag)
		rebuilt.checkEvaluation(t, key, flag)
	}
}

// serveByARule creates a flag with a rule that matches everyone: drawn rules may match no one.
func (v views) serveByARule(t *testing.T) (flag state.Flag) {
	t.Helper()
	ref := commands.FlagRef{TenantID: "t", Key: "served"}
	rule := commands.NewRule{
		NewID:      commands.NewID(),
		Salt:       commands.NewSalt(),
		Conditions: []events.Condition{},
		Serve:      &commands.NewServe{Value: json.RawMessage("true")},
	}
	for _, cmd := range []commands.Command[state.Flag]{
		commands.CreateFlag{TenantID: ref.TenantID, Key: ref.Key, ID: commands.NewID(), Type: events.BooleanFlag, Salt: commands.NewSalt()},
		commands.SetRules{FlagRef: ref, Environment: environments[0], Rules: []commands.NewRule{rule}},
		commands.SwitchFlag{FlagRef: ref, Environment: environments[0], On: true},
	} {
		after, done, err := writer.Do(t.Context(), v.writer, tester, cmd)
		if err != nil {
			t.Fatal(err)
		}
		flag = after
		v.wait(t, done.Position)
	}
	return flag
}

// checkRows compares the rows of a flag with the state after its last command.
func (v views) checkRows(t rapid.TB, key string, f state.Flag) {
	for _, e := range environments {
		row, variations, err := v.read.Flag(context.Background(), "t", e.ID, key)
		if !f.Exists {
			if !errors.Is(err, queries.ErrNotFound) {
				t.Fatalf("a flag that does not exist is read: %+v, %v", row, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := queries.Flag{
			ID:           f.ID,
			Key:          f.Key,
			Name:         f.Name,
			Type:         string(f.Type),
			Enabled:      f.Enabled.Has(e.ID),
			DefaultValue: f.DefaultValue,
			Description:  f.Description,
			Tags:         f.Tags,
			Permanent:    f.Permanent,
			ClientSide:   f.ClientSide,
			OffServes:    f.OffServes,
			Links:        f.Links, // an owner who is no member is not shown
			Status:       string(f.Status),
			Version:      int64(f.Version),
			CreatedAt:    f.CreatedAt,
			UpdatedAt:    f.UpdatedAt,
			FlagUse:      row.FlagUse, // not part of the facts
		}
		if diff := cmp.Diff(want, row, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the row in %s differs from the state (-state +row):\n%s", e.Name, diff)
		}
		if diff := cmp.Diff(f.Variations, variations, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the rows of variations differ from the state (-state +rows):\n%s", diff)
		}
		rules, err := v.read.Rules(context.Background(), "t", e.ID, key)
		if err != nil {
			t.Fatal(err)
		}
		wantRules := queries.Rules{Version: int64(f.Version), Rules: f.Rules[e.ID], Fallthrough: f.FallthroughIn(e.ID)}
		if diff := cmp.Diff(wantRules, rules, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the rules in %s differ from the state (-state +row):\n%s", e.Name, diff)
		}
	}
	// Each event has its entry, including events of earlier lives of the key.
	history, err := v.read.History(context.Background(), "t", "flag", key, queries.HistoryFilter{}, queries.Page{})
	if errors.Is(err, queries.ErrNotFound) {
		history, err = &queries.List[queries.HistoryEntry]{}, nil
	}
	if err != nil || history.Total != int(f.Version) {
		t.Fatalf("the history is %v, %v; the version is %d", history, err, f.Version)
	}
}

// shownFlag is the flag in API responses.
type shownFlag struct {
	ID, Key, Name, Type  string
	Enabled              bool
	DefaultValue         json.RawMessage
	Description          string
	Tags                 []string
	ProjectID            *string
	Permanent            bool
	ClientSide           bool
	OffServes            string
	Links                []events.Link
	Status               string
	Version              events.Revision
	CreatedAt, UpdatedAt time.Time
	Variations           []events.Variation
}

func shown(f state.Flag, environmentID string) shownFlag {
	return shownFlag{
		Links:        f.Links,
		ID:           f.ID,
		Key:          f.Key,
		Name:         f.Name,
		Type:         string(f.Type),
		Enabled:      f.Enabled.Has(environmentID),
		DefaultValue: f.DefaultValue,
		Description:  f.Description,
		Tags:         f.Tags,
		Permanent:    f.Permanent,
		ClientSide:   f.ClientSide,
		OffServes:    f.OffServes.Text(),
		Status:       string(f.Status),
		Version:      f.Version,
		CreatedAt:    f.CreatedAt,
		UpdatedAt:    f.UpdatedAt,
		Variations:   f.Variations,
	}
}

// checkAPI compares API responses with the state after the flag's last command.
func (v views) checkAPI(t *testing.T, property *rapid.T, key string, f state.Flag) {
	d := nodetest.Drawn{TB: t, Property: property}
	me := *v.api
	me.Service = v.api.Service.In(d)
	// A change without effect is answered from the stream, after its node can show the stream's state.
	folded := me.Call("PATCH", nodetest.FlagPath(key), `{}`)
	if !f.Exists {
		folded.Refused(404)
		me.Call("GET", nodetest.FlagPath(key), nil).Refused(404)
		me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{"targetingKey":"u1"}`).Refused(404)
		return
	}
	check := func(a *nodetest.Answer, environmentID string) {
		var got shownFlag
		a.Want(200).Decode(&got)
		if diff := cmp.Diff(shown(f, environmentID), got, cmpopts.EquateEmpty()); diff != "" {
			property.Fatalf("%s shows another flag than the state (-state +shown):\n%s", a.Call, diff)
		}
		nodetest.Same(d, "its ETag", a.Header.Get("ETag"), fmt.Sprintf(`"%d"`, f.Version))
	}
	check(folded, environments[0].ID)
	for _, e := range environments {
		check(me.Call("GET", nodetest.FlagPath(key), nil, "X-Environment", e.Name), e.ID)
		var list []shownFlag
		me.Call("GET", "/api/v1/flags?q="+key, nil, "X-Environment", e.Name).Want(200).Decode(&list)
		row := shown(f, e.ID)
		row.Variations = nil
		i := slices.IndexFunc(list, func(f shownFlag) bool { return f.Key == key })
		if diff := cmp.Diff([]shownFlag{row}, list[i:i+1], cmpopts.EquateEmpty()); diff != "" {
			property.Fatalf("the list in %s shows another flag than the state (-state +shown):\n%s", e.Name, diff)
		}
		want, refusal := evaluated(f, e.ID, "u1")
		a := me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{"targetingKey":"u1","attributes":{"plan":"pro","n":5}}`,
			"X-Environment", e.Name)
		if refusal != nil {
			a.Refused(422, "attributes.none")
			continue
		}
		a.Want(200).Shows(map[string]any{
			"enabled":     want.Enabled,
			"reason":      want.Reason,
			"flagVersion": want.Version,
			"variationId": orNull(want.VariationID),
			"ruleId":      orNull(want.RuleID),
		})
		nodetest.Same(d, "the value that is served", a.Raw("value"), string(want.Value))
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
