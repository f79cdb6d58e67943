package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// views are the three places that a flag's facts lead to, over one database: what commands fold, what lists read, what is evaluated.
type views struct {
	writer   *commands.Writer
	progress *projections.Progress
	read     *queries.Queries
	live     *snapshot.Snapshot
}

func newViews(t *testing.T) views {
	t.Helper()
	url, log := pgtest.URL(t), testLog(t)
	if err := prepare(t.Context(), url, log); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(t.Context(), url, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	pool, err := openPool(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	v := views{progress: projections.NewProgress(), live: snapshot.New()}
	v.read = queries.New(pool, v.live)
	v.writer = &commands.Writer{Store: store, Await: func(context.Context, events.Position) bool { return true }} // the test waits once in a while
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { v.live.Run(ctx, store, v.progress.SnapshotReached, log) })
	parts.Go(func() { _ = projections.Run(ctx, url, store, v.progress, log) })
	t.Cleanup(func() {
		cancel()
		parts.Wait()
	})
	return v
}

var (
	tester       = commands.By{Actor: events.Actor{Kind: events.UserActor, ID: "tester"}}
	environments = []events.EnvironmentRef{{ID: "e1", Name: "production"}, {ID: "e2", Name: "development"}}
)

// Whatever is done to a flag, all three views show the same flag afterwards.
func TestAllViewsOfAFlagAgree(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	_, done, err := commands.Do(t.Context(), v.writer, tester, commands.CreateTenant{ID: "t", Name: "Tenant", Creator: "tester", Environments: environments})
	if err != nil {
		t.Fatal(err)
	}
	last := done.Position
	var flags, refusals atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		key := fmt.Sprintf("f%d", flags.Add(1))
		var flag commands.Flag
		for range rapid.IntRange(1, 15).Draw(rt, "commands") {
			after, done, err := commands.Do(t.Context(), v.writer, tester, drawCommand(rt, key, flag))
			switch {
			case commands.KindOf(err) != commands.Internal: // refused
				refusals.Add(1)
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
		}
		for deadline := time.Now().Add(30 * time.Second); !v.progress.Wait(t.Context(), last); {
			if time.Now().After(deadline) {
				rt.Fatalf("position %s is not shown", last)
			}
		}
		v.checkRows(rt, key, flag)
		v.checkEvaluation(rt, key, flag)
	})
	t.Logf("%d flags, %d commands refused", flags.Load(), refusals.Load())
}

// drawCommand draws any command on a flag, possible or not.
func drawCommand(t *rapid.T, key string, f commands.Flag) commands.Command[commands.Flag] {
	ref := commands.FlagRef{TenantID: "t", Key: key}
	kind := f.Type
	if !f.Exists {
		kind = rapid.SampledFrom([]events.FlagType{events.BooleanFlag, events.StringFlag, events.NumberFlag, events.JSONFlag}).Draw(t, "type")
	}
	if !f.Exists && rapid.IntRange(0, 9).Draw(t, "create") > 0 {
		create := commands.CreateFlag{
			TenantID: "t", Key: key, ID: commands.NewID(), Type: kind, Name: maybe(t, drawText), Description: drawText(t), Tags: drawTags(t), Salt: commands.NewSalt(),
		}
		if value := maybe(t, drawValue(kind)); value != nil {
			create.DefaultValue = *value
		}
		for range rapid.IntRange(0, 3).Draw(t, "variations") {
			create.Variations = append(create.Variations, drawVariation(t, kind))
		}
		return create
	}
	variation := "none"
	if len(f.Variations) > 0 {
		variation = rapid.SampledFrom(f.Variations).Draw(t, "variation").ID
	}
	switch rapid.SampledFrom([]string{"update", "update", "switch", "switch", "add", "add", "change", "change", "remove", "delete", "create"}).Draw(t, "command") {
	case "update":
		return commands.UpdateFlag{
			FlagRef: ref, Name: maybe(t, drawText), Description: maybe(t, drawText), DefaultValue: maybe(t, drawValue(kind)), Tags: maybe(t, drawTags),
			Status: maybe(t, func(t *rapid.T) events.FlagStatus {
				return rapid.SampledFrom([]events.FlagStatus{events.ActiveFlag, events.ActiveFlag, events.InactiveFlag, events.ArchivedFlag}).Draw(t, "status")
			}),
		}
	case "switch":
		return commands.SwitchFlag{FlagRef: ref, Environment: rapid.SampledFrom(environments).Draw(t, "environment"), On: rapid.IntRange(0, 3).Draw(t, "on") > 0}
	case "add":
		return commands.AddVariation{FlagRef: ref, Variation: drawVariation(t, kind)}
	case "change":
		return commands.UpdateVariation{
			FlagRef: ref, ID: variation, Name: maybe(t, drawText), Value: maybe(t, drawValue(kind)), Description: maybe(t, drawText), Weight: maybe(t, drawWeight),
		}
	case "remove":
		return commands.RemoveVariation{FlagRef: ref, ID: variation}
	case "delete":
		return commands.DeleteFlag{FlagRef: ref}
	default:
		return commands.CreateFlag{TenantID: "t", Key: key, ID: commands.NewID(), Type: kind, Salt: commands.NewSalt()}
	}
}

func maybe[T any](t *rapid.T, draw func(*rapid.T) T) *T {
	if rapid.Bool().Draw(t, "sent") {
		return new(draw(t))
	}
	return nil
}

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.StringMatching(`[a-zA-Zäöü "'\\{},<>&😀-]{0,12}`), rapid.Just("x")).Draw(t, "text")
}

func drawTags(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.StringMatching(`[a-c"{},]{1,2}`), 0, 4).Draw(t, "tags")
}

func drawWeight(t *rapid.T) events.Weight {
	return rapid.OneOf(rapid.Just[events.Weight](0), rapid.Map(rapid.Int64Range(0, int64(events.MaxWeight)), func(n int64) events.Weight { return events.Weight(n) })).Draw(t, "weight")
}

func drawVariation(t *rapid.T, kind events.FlagType) commands.NewVariation {
	return commands.NewVariation{ID: commands.NewID(), Name: drawText(t), Value: drawValue(kind)(t), Description: drawText(t), Weight: drawWeight(t)}
}

// drawValue draws JSON that is mostly of a flag's type, in spellings that something could change.
func drawValue(kind events.FlagType) func(t *rapid.T) json.RawMessage {
	values := map[events.FlagType][]string{
		events.BooleanFlag: {`true`, `false`, `1`},
		events.StringFlag:  {`""`, `"<a&b>"`, `"\u00e9\/"`, `"é"`, `null`},
		events.NumberFlag:  {`9007199254740993`, `1.50`, `-0`, `1e2`, `"1"`},
		events.JSONFlag:    {`{"b":1, "a":[1.50,{"z":null}]}`, `[]`, `null`, `"text"`},
	}
	return func(t *rapid.T) json.RawMessage {
		return json.RawMessage(rapid.SampledFrom(values[kind]).Draw(t, "value"))
	}
}

// checkRows compares what is read of a flag with the state that the last command on it returned.
func (v views) checkRows(t *rapid.T, key string, f commands.Flag) {
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
			ID: f.ID, Key: f.Key, Name: f.Name, Type: string(f.Type), Enabled: f.Enabled[e.ID], DefaultValue: f.DefaultValue, Description: f.Description,
			Tags: f.Tags, Status: string(f.Status), Version: int64(f.Version), CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt,
		}
		if diff := cmp.Diff(want, row, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the row in %s differs from the state (-state +row):\n%s", e.Name, diff)
		}
		if diff := cmp.Diff(f.Variations, variations, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the rows of variations differ from the state (-state +rows):\n%s", diff)
		}
	}
	// Each event has its entry, those of earlier lives under the key as well.
	_, entries, err := v.read.History(context.Background(), "t", key, queries.HistoryFilter{}, queries.Page{})
	if err != nil && !errors.Is(err, queries.ErrNotFound) || entries != int(f.Version) {
		t.Fatalf("the history has %d entries, %v; the version is %d", entries, err, f.Version)
	}
}

// checkEvaluation compares what a flag serves with what its state and the rules of evaluation say.
func (v views) checkEvaluation(t *rapid.T, key string, f commands.Flag) {
	tenant, ok := v.live.Tenant("t")
	if !ok {
		t.Fatal("the snapshot does not have the tenant")
	}
	compiled, ok := tenant.Flag(key)
	if ok != f.Exists {
		t.Fatalf("the snapshot has the flag: %v; it exists: %v", ok, f.Exists)
	}
	if !ok {
		return
	}
	for _, e := range environments {
		for _, unit := range []string{"", "u1", "u2", "u3", "größer"} {
			want, wantErr := evaluated(f, e.ID, unit)
			got, err := compiled.Evaluate(e.ID, &snapshot.Context{TargetingKey: unit})
			if diff := cmp.Diff(want, got); diff != "" || cmp.Diff(wantErr, err) != "" {
				t.Fatalf("in %s, %q is served %v, want %v (-want +got):\n%s", e.Name, unit, err, wantErr, diff)
			}
		}
	}
}

// evaluated is the evaluation of a flag, spelled out from its state.
func evaluated(f commands.Flag, environmentID, unit string) (snapshot.Result, error) {
	r := snapshot.Result{Value: f.DefaultValue, Version: f.Version}
	switch {
	case f.Status == events.ArchivedFlag:
		r.Reason = snapshot.Archived
		return r, nil
	case f.Status == events.InactiveFlag || !f.Enabled[environmentID]:
		r.Reason = snapshot.Off
		return r, nil
	}
	r.Enabled, r.Reason = true, snapshot.Fallthrough
	var total uint64
	for _, w := range f.Variations {
		total += uint64(w.Weight)
	}
	switch {
	case total > 0 && unit == "":
		return snapshot.Result{}, &snapshot.NoUnitError{Attribute: "targetingKey"}
	case total > 0:
		r.Split = true
		bucket, upTo := snapshot.Bucket(f.Salt, unit, total), uint64(0)
		for _, w := range f.Variations {
			if upTo += uint64(w.Weight); bucket < upTo {
				r.Value, r.VariationID, r.VariationName = w.Value, w.ID, w.Name
				break
			}
		}
	case f.Type == events.BooleanFlag:
		r.Value = json.RawMessage(`true`)
	}
	return r, nil
}
