package state_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
)

// A description names every rule that was added, removed or changed, and their order if that changed.
func TestDescriptionNamesEveryChangedRule(t *testing.T) {
	list := rapid.Custom(func(t *rapid.T) []events.Rule {
		var rules []events.Rule
		ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 5, rapid.ID)
		for _, id := range ids.Draw(t, "ids") {
			rules = append(
				rules,
				events.Rule{
					ID:    id,
					Name:  rapid.SampledFrom([]string{"", "n"}).Draw(t, "name"),
					Serve: events.Serve{VariationID: "v"},
				},
			)
		}
		return rules
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := list.Draw(t, "before"), list.Draw(t, "after")
		fact := events.ChangeRules(events.EnvironmentRef{ID: "e1", Name: "production"}, before, after)
		described, err := state.Describe(
			events.Recorded{Event: events.Event{Fact: fact}, Stream: events.FlagStream("t", "k"), Name: fact.StoredName()},
		)
		if err != nil {
			t.Fatal(err)
		}
		text, err := described.Changes.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var changes map[string]struct {
			From, To json.RawMessage
		}
		if err := json.Unmarshal(text, &changes); err != nil {
			t.Fatal(err)
		}
		was, is := map[string]string{}, map[string]string{}
		var order [2][]string
		for i, rules := range [][]events.Rule{before, after} {
			for _, r := range rules {
				order[i] = append(order[i], r.ID)
				[]map[string]string{was, is}[i][r.ID] = r.Name
			}
		}
		var want []string
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			oldName, had := was[id]
			newName, has := is[id]
			if had != has || oldName != newName {
				want = append(want, "rules."+id)
				if c := changes["rules."+id]; (string(c.From) == "null") == had || (string(c.To) == "null") == has {
					t.Errorf("%s is shown from %s to %s", id, c.From, c.To)
				}
			}
		}
		if !slices.Equal(order[0], order[1]) {
			want = append(want, "rules.order")
		}
		if got := described.Changes.Fields(); !slices.Equal(got, want) {
			t.Errorf("the description names %v, want %v", got, want)
		}
	})
}

// recorded returns a fact as the first of a stream of its kind.
func recorded(fact events.Fact) events.Recorded {
	name := fact.StoredName()
	kind, _, _ := strings.Cut(name, ".")
	return events.Recorded{Event: events.Event{Fact: fact}, Name: name, Stream: kind + "-t1.checkout"}
}

func TestEveryGoldenFactHasSummaryAndLines(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.v*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	silent := map[string]bool{
		"flag.enabled": true, "flag.disabled": true, "flag.deleted": true, "project.deleted": true, "tenant.deleted": true,
		"tenant.member_removed": true, "tenant.oauth_client_deleted": true, "tenant.evaluation_key_removed": true,
		"segment.deleted": true, "segment.forgotten": true, "user.erased": true,
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(path), ".json")
		dot := strings.LastIndex(base, ".v")
		name, version := base[:dot], base[dot+len(".v"):]
		e, err := events.Decode(
			events.Stored{Name: name, Version: int(version[0] - '0'), Data: data, Metadata: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		d, err := state.Describe(recorded(e.Fact))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(state.ResourceTypes(), d.ResourceType) {
			t.Errorf("the resource type %q of %s is not listed", d.ResourceType, path)
		}
		if s := d.Summary(); (s == "") != silent[name] || utf8.RuneCountInString(s) > 100 {
			t.Errorf("the summary of %s is %q; silent lists the facts that have none", path, s)
		}
		for field, c := range d.Changes {
			if d.Names.Field(field, c) == "" || c.To != nil && d.Names.Lines(field, c.To) == nil {
				t.Errorf("%s of %s has no words", field, path)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	change := func(from, to string) *events.Change[string] { return &events.Change[string]{From: from, To: to} }
	production := events.EnvironmentRef{ID: "e1", Name: "production"}
	pro, team := events.Rule{ID: "r1", Name: "Pro"}, events.Rule{ID: "r2"}
	paid := pro
	paid.Serve = events.Serve{VariationID: "v1"}
	names := state.Names{"v1": "on", "v2": "off", "r1": "Pro"}
	long := strings.Repeat("é", 60)
	end := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	on := events.Variation{ID: "v1", Name: "on", Value: raw("true"), Weight: 1500}
	weight := events.VariationUpdated{ID: "v1", Weight: &events.Change[events.Weight]{From: 1500, To: 2000}}
	split := events.Serve{
		Rollout:  []events.Share{{VariationID: "v1", Weight: 25_000}, {VariationID: "v2", Weight: 75_000}},
		BucketBy: "plan",
	}
	subscribed := events.SubscriptionChanged{
		From: events.Subscription{Plan: "free", Status: "none"},
		To: events.Subscription{
			Plan: "pro", Status: "active", ID: "s", CustomerID: "c", BillingCycle: "monthly", PeriodEnd: end,
		},
	}
	for _, c := range []struct {
		fact events.Fact
		want string
	}{
		{events.FlagUpdated{Name: change("a", "b")}, `name "a" → "b"`},
		{events.FlagUpdated{Description: change(long, "")}, `description "` + long[:2*38] + `… → ""`},
		{events.FlagUpdated{ProjectID: change("p", "")}, `projectId "p" → null`},
		{
			events.FlagCreated{Name: "K", Type: "boolean", DefaultValue: raw("false")},
			`defaultValue false, name "K", type "boolean"`,
		},
		{events.FlagStatusChanged{From: "active", To: "archived"}, `status "active" → "archived"`},
		{events.FlagEnabled{Environment: production}, ""},
		{events.VariationAdded{Variation: on}, `variation "on" (true, weight 1.5) added`},
		{events.VariationRemoved{Variation: on}, `variation "on" (true, weight 1.5) removed`},
		{weight, `variation "on" weight 1.5 → 2`},
		{events.ChangeRules(production, nil, []events.Rule{pro, team}), `rule "Pro" added, rule r2 added`},
		{events.ChangeRules(production, []events.Rule{pro}, nil), `rule "Pro" removed`},
		{events.ChangeRules(production, []events.Rule{pro}, []events.Rule{paid}), `rule "Pro" changed`},
		{
			events.ChangeRules(production, []events.Rule{pro, team}, []events.Rule{team, pro}),
			"rules in another order",
		},
		{events.FallthroughChanged{To: &events.Serve{VariationID: "v1"}}, "fallthrough not set → on"},
		{
			events.FallthroughChanged{From: &split, To: &events.Serve{Value: raw("true")}},
			"fallthrough on 25 / off 75 by plan → true",
		},
		{
			events.PrerequisitesChanged{
				From: []events.Prerequisite{{FlagKey: "stop", Off: true}},
				To: []events.Prerequisite{
					{FlagKey: "stop", Off: true},
					{FlagKey: "payments", Serves: []events.ServedValue{{VariationID: "v1"}, {Value: raw(`"x"`)}}},
				},
			},
			`prerequisites stop off → stop off, payments serves on or "x"`,
		},
		{
			events.PrerequisitesChanged{From: []events.Prerequisite{{FlagKey: "stop", Off: true}}},
			"prerequisites stop off → none",
		},
		{events.FlagReverted{Version: 3}, "version 3"},
		{events.MemberJoined{ID: "i1", UserID: "u1", Role: "viewer"}, "as viewer"},
		{events.MemberRoleChanged{UserID: "u1", From: "viewer", To: "admin"}, `role "viewer" → "admin"`},
		{
			events.TenantUpdated{Name: change("a", "b"), Contact: []events.ContactField{"contactEmail"}},
			`contactEmail, name "a" → "b"`,
		},
		{
			subscribed,
			`billingCycle "monthly", currentPeriodEnd, customerId "c", id "s", plan "free" → "pro", status`,
		},
	} {
		d, err := state.Describe(recorded(c.fact))
		if err != nil {
			t.Fatal(err)
		}
		d.Names = names
		if got := d.Summary(); got != c.want {
			t.Errorf("%s has the summary\n%s\nwant\n%s", c.fact.StoredName(), got, c.want)
		}
	}
}

func TestLinesOfRule(t *testing.T) {
	rule := events.Rule{
		ID:   "r1",
		Name: "Pro",
		Conditions: []events.Condition{
			{Attribute: "plan", Op: events.In, Values: []json.RawMessage{[]byte(`"pro"`), []byte(`1`)}},
			{Attribute: "beta", Op: events.Exists, Negate: true},
		},
		Serve: events.Serve{VariationID: "v1"},
	}
	d, err := state.Describe(recorded(events.ChangeRules(events.EnvironmentRef{ID: "e1"}, nil, []events.Rule{rule})))
	if err != nil {
		t.Fatal(err)
	}
	names := state.Names{"v1": "on"}
	words := []string{`if plan in "pro", 1`, "and beta not exists", "→ on"}
	if got := names.Rule(rule); !slices.Equal(got, words) {
		t.Errorf("the rule is %q, want %q", got, words)
	}
	got := names.Lines("rules.r1", d.Changes["rules.r1"].To)
	if want := append([]string{`name "Pro"`}, words...); !slices.Equal(got, want) {
		t.Errorf("the change is %q, want %q", got, want)
	}
}
