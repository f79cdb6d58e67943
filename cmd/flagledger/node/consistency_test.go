package node_test

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
	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// views are the places that a flag's facts lead to, over one database: what commands fold, what lists read, what is evaluated, and what
// callers of a service are shown.
type views struct {
	writer   *commands.Writer
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
	v := views{store: api.Service.Store(), progress: projections.NewProgress(models.All()), live: snapshot.New(), api: api}
	v.read = queries.New(pool)
	v.writer = commands.NewWriter(v.store, func(context.Context, events.Position, []string) bool { return true }) // the test waits once in a while
	run(t, func(ctx context.Context) { v.live.Run(ctx, v.store, v.progress.SnapshotReached, log) })
	run(t, func(ctx context.Context) { v.progress.Listen(ctx, url, v.store.Engine(), log) })
	create := commands.CreateTenant{ID: "t", Name: "Tenant", Creator: api.UserID, Environments: environments}
	_, done, err := commands.Do(t.Context(), v.writer, tester, create)
	if err != nil {
		t.Fatal(err)
	}
	v.wait(t, done.Position)
	api.Tenant = "t"
	api.Service.Eventually("the service knows the tenant", func() bool { return api.Call("GET", "/api/v1/flags", nil).Status == 200 })
	return v
}

// run runs something until the test ends.
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
	tester       = commands.By{Actor: events.Actor{Kind: events.UserActor, ID: "tester"}}
	environments = []events.EnvironmentRef{{ID: "e1", Name: "production"}, {ID: "e2", Name: "development"}}
)

// Whatever is done to a flag, all views show the same flag afterwards, and so do those that are made anew from the facts.
func TestAllViewsOfAFlagAgree(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	flags := map[string]commands.Flag{}
	var refusals, matches int64
	rapid.Check(t, func(rt *rapid.T) {
		key := fmt.Sprintf("f%d", len(flags))
		var flag commands.Flag
		var last events.Position
		do := func(cmd commands.Command[commands.Flag]) {
			after, done, err := commands.Do(t.Context(), v.writer, tester, cmd)
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
	if t.Logf("%d flags, %d commands refused, %d rules matched", len(flags), refusals, matches); matches == 0 {
		t.Error("no rule matched")
	}
	anew := v
	anew.live = snapshot.New()
	run(t, func(ctx context.Context) { anew.live.Run(ctx, v.store, func(events.Page) {}, nodetest.Log(t)) })
	if err := projections.Rebuild(t.Context(), v.api.Service.DatabaseURL, v.store, models.All(), nil, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
	<-anew.live.Ready()
	for key, flag := range flags {
		anew.checkRows(t, key, flag)
		anew.checkEvaluation(t, key, flag)
	}
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
			DefaultValue: maybeValue(t, kind),
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
	f.Type = kind
	environment := rapid.SampledFrom(environments).Draw(t, "environment")
	all := []string{"update", "update", "switch", "switch", "add", "add", "change", "change", "remove", "rules", "rules", "rules", "fallthrough", "fallthrough", "delete", "create"}
	switch rapid.SampledFrom(all).Draw(t, "command") {
	case "update":
		return commands.UpdateFlag{
			FlagRef: ref, Name: maybe(t, drawText), Description: maybe(t, drawText), DefaultValue: maybeValue(t, kind), Tags: maybe(t, drawTags),
			Status: maybe(t, func(t *rapid.T) events.FlagStatus {
				return rapid.SampledFrom([]events.FlagStatus{events.ActiveFlag, events.ActiveFlag, events.InactiveFlag, events.ArchivedFlag}).Draw(t, "status")
			}),
		}
	case "switch":
		return commands.SwitchFlag{FlagRef: ref, Environment: environment, On: rapid.IntRange(0, 3).Draw(t, "on") > 0}
	case "add":
		return commands.AddVariation{FlagRef: ref, Variation: drawVariation(t, kind)}
	case "change":
		return commands.UpdateVariation{
			FlagRef: ref, ID: variation, Name: maybe(t, drawText), Value: maybeValue(t, kind), Description: maybe(t, drawText), Weight: maybe(t, drawWeight),
		}
	case "remove":
		return commands.RemoveVariation{FlagRef: ref, ID: variation, Environments: environments}
	case "rules":
		return drawRules(t, f, ref, environment)
	case "fallthrough":
		set := commands.SetFallthrough{FlagRef: ref, Environment: environment, Unset: rapid.IntRange(0, 3).Draw(t, "unset") == 0}
		if !set.Unset {
			set.Serve = drawServe(t, f)
		}
		return set
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

func maybeValue(t *rapid.T, kind events.FlagType) json.RawMessage {
	if rapid.Bool().Draw(t, "sent") {
		return drawValue(kind)(t)
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

func drawRules(t *rapid.T, f commands.Flag, ref commands.FlagRef, environment events.EnvironmentRef) commands.SetRules {
	set := commands.SetRules{FlagRef: ref, Environment: environment, Rules: []commands.NewRule{}}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		set.Rules = append(set.Rules, drawRule(t, f, environment))
	}
	return set
}

// drawRule draws a new rule, or one that an environment has, or one that it does not have.
func drawRule(t *rapid.T, f commands.Flag, environment events.EnvironmentRef) commands.NewRule {
	rule := commands.NewRule{NewID: commands.NewID(), Salt: commands.NewSalt(), Name: drawText(t), Conditions: []events.Condition{}, Serve: drawServe(t, f)}
	for range rapid.IntRange(0, 2).Draw(t, "conditions") {
		rule.Conditions = append(rule.Conditions, rapid.SampledFrom(someConditions).Draw(t, "condition").Condition)
	}
	ids := []string{"", "", "", "", ""}
	for _, r := range f.Rules[environment.ID] {
		ids = append(ids, r.ID)
	}
	if id := rapid.SampledFrom(append(ids, "none")).Draw(t, "id"); id != "" {
		rule.ID = &id
	}
	return rule
}

func drawServe(t *rapid.T, f commands.Flag) *commands.NewServe {
	variations := rapid.Permutation(f.Variations).Draw(t, "variations")
	switch kind := rapid.IntRange(0, 12).Draw(t, "serve"); {
	case kind == 12:
		return &commands.NewServe{VariationID: new("none")}
	case kind >= 9 || len(variations) == 0:
		return &commands.NewServe{Value: drawValue(f.Type)(t)}
	case kind >= 5:
		return &commands.NewServe{VariationID: &variations[0].ID}
	}
	serve := &commands.NewServe{BucketBy: rapid.SampledFrom([]*string{nil, nil, new("targetingKey"), new("plan"), new("none")}).Draw(t, "bucketBy")}
	for _, v := range variations[:rapid.IntRange(1, len(variations)).Draw(t, "shares")] {
		serve.Rollout = append(serve.Rollout, events.Share{VariationID: v.ID, Weight: drawWeight(t)})
	}
	return serve
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
		if rapid.IntRange(0, 3).Draw(t, "any") == 0 {
			return json.RawMessage(nodetest.DrawValue(t, kind))
		}
		return json.RawMessage(rapid.SampledFrom(values[kind]).Draw(t, "value"))
	}
}

// checkRows compares what is read of a flag with the state that the last command on it returned.
func (v views) checkRows(t rapid.TB, key string, f commands.Flag) {
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
		rules, err := v.read.Rules(context.Background(), "t", e.ID, key)
		if err != nil {
			t.Fatal(err)
		}
		wantRules := queries.Rules{Version: int64(f.Version), Rules: f.Rules[e.ID], Fallthrough: f.FallthroughIn(e.ID)}
		if diff := cmp.Diff(wantRules, rules, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the rules in %s differ from the state (-state +row):\n%s", e.Name, diff)
		}
	}
	// Each event has its entry, those of earlier lives under the key as well.
	_, entries, err := v.read.History(context.Background(), "t", key, queries.HistoryFilter{}, queries.Page{})
	if err != nil && !errors.Is(err, queries.ErrNotFound) || entries != int(f.Version) {
		t.Fatalf("the history has %d entries, %v; the version is %d", entries, err, f.Version)
	}
}

// shownFlag is what callers are shown of a flag.
type shownFlag struct {
	ID, Key, Name, Type  string
	Enabled              bool
	DefaultValue         json.RawMessage
	Description          string
	Tags                 []string
	ProjectID            *string
	Status               string
	Version              events.Revision
	CreatedAt, UpdatedAt time.Time
	Variations           []events.Variation
}

func shown(f commands.Flag, environmentID string) shownFlag {
	return shownFlag{
		ID: f.ID, Key: f.Key, Name: f.Name, Type: string(f.Type), Enabled: f.Enabled[environmentID], DefaultValue: f.DefaultValue, Description: f.Description,
		Tags: f.Tags, Status: string(f.Status), Version: f.Version, CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt, Variations: f.Variations,
	}
}

// checkAPI compares what callers are shown of a flag with the state that the last command on it returned.
func (v views) checkAPI(t *testing.T, property *rapid.T, key string, f commands.Flag) {
	d := nodetest.Drawn{TB: t, Property: property}
	me := *v.api
	me.Service = v.api.Service.In(d)
	// A change that changes nothing is answered from the stream, and once its node can show what is in it.
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
		a := me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{"targetingKey":"u1","attributes":{"plan":"pro","n":5}}`, "X-Environment", e.Name)
		if refusal != nil {
			a.Refused(422, "attributes.none")
			continue
		}
		a.Want(200).Shows(map[string]any{
			"enabled": want.Enabled, "reason": want.Reason, "flagVersion": want.Version, "variationId": orNull(want.VariationID), "ruleId": orNull(want.RuleID),
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

// checkEvaluation compares what a flag serves with what its state and the rules of evaluation say, and counts how often a rule matched.
func (v views) checkEvaluation(t rapid.TB, key string, f commands.Flag) (matches int64) {
	tenant, ok := v.live.Tenant("t")
	if !ok {
		t.Fatal("the snapshot does not have the tenant")
	}
	compiled, ok := tenant.Flag(key)
	if ok != f.Exists {
		t.Fatalf("the snapshot has the flag: %v; it exists: %v", ok, f.Exists)
	}
	if !ok {
		return 0
	}
	for _, e := range environments {
		for _, unit := range []string{"", "u1", "u2", "u3", "größer"} {
			want, wantErr := evaluated(f, e.ID, unit)
			got, err := compiled.Evaluate(e.ID, &snapshot.Context{TargetingKey: unit, Attributes: map[string]any{"plan": "pro", "n": snapshot.ParseNumber([]byte("5"))}})
			if diff := cmp.Diff(want, got); diff != "" || cmp.Diff(wantErr, err) != "" {
				t.Fatalf("in %s, %q is served %v, want %v (-want +got):\n%s", e.Name, unit, err, wantErr, diff)
			}
			if got.RuleID != "" {
				matches++
			}
		}
	}
	return matches
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
	r.Enabled, r.Reason, r.HasRules = true, snapshot.Fallthrough, len(f.Rules[environmentID]) > 0
	for _, rule := range f.Rules[environmentID] {
		if !slices.ContainsFunc(rule.Conditions, func(c events.Condition) bool { return !holds(c, unit) }) {
			r.Reason, r.RuleID = snapshot.RuleMatch, rule.ID
			return served(r, f, rule.Serve, rule.Salt, unit)
		}
	}
	if serve := f.FallthroughIn(environmentID); serve != nil {
		return served(r, f, *serve, f.Salt, unit)
	}
	var byWeight events.Serve
	total := events.Weight(0)
	for _, w := range f.Variations {
		byWeight.Rollout = append(byWeight.Rollout, events.Share{VariationID: w.ID, Weight: w.Weight})
		total += w.Weight
	}
	switch {
	case total > 0:
		return served(r, f, byWeight, f.Salt, unit)
	case f.Type == events.BooleanFlag:
		r.Value = json.RawMessage(`true`)
	}
	return r, nil
}

// served is what a rule or a fallthrough serves to somebody of the plan "pro".
func served(r snapshot.Result, f commands.Flag, s events.Serve, salt, unit string) (snapshot.Result, error) {
	if s.Value != nil {
		r.Value = s.Value
		return r, nil
	}
	id := s.VariationID
	if s.Rollout != nil {
		r.Split = true
		attribute := "targetingKey"
		if s.BucketBy != "" {
			attribute = s.BucketBy
			unit = map[string]string{"plan": "pro"}[s.BucketBy]
		}
		if unit == "" {
			return snapshot.Result{}, &snapshot.NoUnitError{Attribute: attribute}
		}
		total, upTo := uint64(0), uint64(0)
		for _, share := range s.Rollout {
			total += uint64(share.Weight)
		}
		bucket := snapshot.Bucket(salt, unit, total)
		for _, share := range s.Rollout {
			if upTo += uint64(share.Weight); bucket < upTo {
				id = share.VariationID
				break
			}
		}
	}
	for _, v := range f.Variations {
		if v.ID == id {
			r.Value, r.VariationID, r.VariationName = v.Value, v.ID, v.Name
		}
	}
	return r, nil
}

// someConditions are conditions of which it is known when they hold for somebody of the plan "pro" whose n is 5.
var someConditions = []struct {
	events.Condition
	holds func(unit string) bool
}{
	{events.Condition{Attribute: "plan", Op: events.In, Values: values(`"free"`, `"\u0070ro"`)}, func(string) bool { return true }},
	{events.Condition{Attribute: "plan", Op: events.In, Values: values(`"pro"`), Negate: true}, func(string) bool { return false }},
	{events.Condition{Attribute: "n", Op: events.Greater, Values: values(`6`, `4.0`)}, func(string) bool { return true }},
	{events.Condition{Attribute: "plan.x", Op: events.Exists}, func(string) bool { return false }},
	{events.Condition{Attribute: "targetingKey", Op: events.In, Values: values(`"u1"`, `"größer"`)}, func(unit string) bool { return unit == "u1" || unit == "größer" }},
	{events.Condition{Attribute: "targetingKey", Op: events.Matches, Values: values(`"^u[2-9]$"`)}, func(unit string) bool { return unit == "u2" || unit == "u3" }},
	{events.Condition{Attribute: "targetingKey", Op: events.Exists, Negate: true}, func(unit string) bool { return unit == "" }},
}

func values(list ...string) (values []json.RawMessage) {
	for _, value := range list {
		values = append(values, json.RawMessage(value))
	}
	return values
}

func holds(c events.Condition, unit string) bool {
	for _, known := range someConditions {
		if cmp.Equal(known.Condition, c) {
			return known.holds(unit)
		}
	}
	panic("a condition that was not drawn")
}
