package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/migrations/pgtest"
)

func TestWhatCanGoIsPrinted(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t), "FLAGLEDGER_STALE_AFTER=1s"}
	i.Serve(settings...)
	c := i.Service().SignUp("me@example.com")
	cleanup := func(arguments ...string) ran { return run(i, settings, append([]string{"cleanup"}, arguments...)...) }
	i.Service().Eventually("the tenant is listed", func() bool { return cleanup("--tenant", c.Tenant).code == 0 })
	if got := cleanup("--tenant", c.Tenant).succeeded().stdout; got != "No flag is unused or settled.\n" {
		t.Errorf("without flags it prints %q", got)
	}
	c.CreateFlag("old-banner", nil)
	c.CreateFlag("old-checkout", nil)
	var shown []map[string]any
	i.Service().Eventually("the flags are old enough", func() bool {
		shown = c.Call("GET", "/api/v1/cleanup", nil).Want(200).List()
		return len(shown) == 2
	})
	var printed []map[string]any
	if err := json.Unmarshal([]byte(cleanup("--tenant", c.Tenant, "--json").succeeded().stdout), &printed); err != nil ||
		!reflect.DeepEqual(printed, shown) {
		t.Errorf("it prints %v, %v, and the API shows %v", printed, err, shown)
	}
	lines := strings.Split(strings.TrimSpace(cleanup("--tenant", c.Tenant).succeeded().stdout), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "FLAG ") ||
		strings.Join(strings.Fields(lines[1])[:2], " ") != "old-banner unused" {
		t.Errorf("for people it prints %q", lines)
	}
	cleanup("--tenant", "nobody").refused("nobody")
	cleanup().refused("--tenant")
}

// A change of a segment counts as a change of the flags whose rules lead to it, also through others.
func TestCleanupReadsWhenDependenciesChanged(t *testing.T) {
	t.Parallel()
	h := newHistory(t, emptyPostgres(t))
	uses := func(key string) []events.Rule {
		value, _ := json.Marshal(key)
		return []events.Rule{{ID: "r", Conditions: []events.Condition{{Op: events.InSegment, Values: []json.RawMessage{value}}}}}
	}
	gone := events.EnvironmentRef{ID: "gone", Name: "gone"}
	h.write(events.TenantStream("t"), "", events.TenantCreated{ID: "t", Name: "t"})
	for _, added := range []events.EnvironmentRef{{ID: "e", Name: "e"}, gone} {
		h.write(events.TenantStream("t"), "", events.EnvironmentAdded{Environment: added})
	}
	for _, key := range []string{"outer", "inner", "other"} {
		h.write(events.SegmentStream("t", key), "", events.SegmentCreated{TenantID: "t", Key: key, ID: key, Name: key})
	}
	h.write(events.SegmentStream("t", "outer"), "", events.ChangeSegmentRules(nil, uses("inner")))
	for _, key := range []string{"k", "plain"} {
		h.write(events.FlagStream("t", key), "",
			events.FlagCreated{TenantID: "t", Key: key, ID: key, Type: events.BooleanFlag, DefaultValue: []byte(`false`)})
	}
	rules := uses("outer")
	rules[0].Serve.Value = []byte(`true`)
	h.write(events.FlagStream("t", "k"), "", events.ChangeRules(events.EnvironmentRef{ID: "e", Name: "e"}, nil, rules))
	elsewhere := uses("other")
	elsewhere[0].Serve.Value = []byte(`true`)
	h.write(events.FlagStream("t", "k"), "", events.ChangeRules(gone, nil, elsewhere))
	h.write(events.TenantStream("t"), "", events.EnvironmentDeleted{Environment: gone})
	changed := h.at
	h.write(events.SegmentStream("t", "inner"), "", events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}})
	h.write(events.SegmentStream("t", "other"), "", events.SegmentDeleted{})
	check := func(want map[string]time.Time) {
		t.Helper()
		r := newDependencyReader(t.Context(), "t", h.store)
		for key, want := range want {
			if got := r.changed(t.Context(), key); !got.Equal(want) || r.err != nil {
				t.Errorf("dependencies of %s changed at %v (%v), want %v", key, got, r.err, want)
			}
		}
	}
	check(map[string]time.Time{"k": changed, "plain": {}})
	h.write(events.FlagStream("t", "plain"), "", events.PrerequisitesChanged{
		Environment: events.EnvironmentRef{ID: "e", Name: "e"}, To: []events.Prerequisite{{FlagKey: "k", Off: true}},
	})
	check(map[string]time.Time{"k": changed, "plain": changed})
	changed = h.at
	h.write(events.FlagStream("t", "k"), "", events.FlagStatusChanged{From: events.ActiveFlag, To: events.InactiveFlag})
	check(map[string]time.Time{"plain": changed})
}
