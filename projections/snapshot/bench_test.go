package snapshot

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// shapes are flags that take different paths through evaluation, by key, each with the only reason and value that the
// user below gets.
var shapes = map[string]struct {
	facts []events.Fact
	want  string
}{
	"boolean": {[]events.Fact{made(events.BooleanFlag, "false")}, "FALLTHROUGH true"},
	"off": {
		[]events.Fact{made(events.BooleanFlag, "false"), events.FlagDisabled{Environment: production}},
		"OFF false",
	},
	"rule": {[]events.Fact{three, ruled(when("r", "pro", toA))}, "RULE_MATCH 1"},
	"split": {
		[]events.Fact{made(events.NumberFlag, "0", choice("a", "1", 90_000), choice("b", "1", 10_000))}, "FALLTHROUGH 1",
	},
	"rollout": {
		[]events.Fact{
			three,
			ruled(
				events.Rule{
					ID:         "r",
					Salt:       "AAAAAAAAAAAAAAAAAAAAAAAAAA",
					Conditions: when("", "pro", toA).Conditions,
					Serve:      rolled("", half("a"), half("a")),
				},
			),
		},
		"RULE_MATCH 1",
	},
	"rollout-by-attribute": {[]events.Fact{three, otherwise(rolled("company.id", half("b"), half("b")))}, "FALLTHROUGH 2"},
	"rollout-by-number": {
		[]events.Fact{three, otherwise(rolled("company.seats", half("b"), half("b")))},
		"FALLTHROUGH 2",
	},
	"fallthrough": {[]events.Fact{three, ruled(when("r", "free", toA)), otherwise(toB)}, "FALLTHROUGH 2"},
	"in-1000": {
		[]events.Fact{three, where("email", events.In, thousand(`"user-%d@example.com"`)...)},
		"RULE_MATCH 1",
	},
	"in-1000-numbers": {[]events.Fact{three, where("company.seats", events.In, thousand(`%d.5`)...)}, "RULE_MATCH 1"},
	"regex": {
		[]events.Fact{three, where("email", events.Matches, `"@(example|acme)\\.(com|org)$"`)},
		"RULE_MATCH 1",
	},
	"suffix": {
		[]events.Fact{three, where("email", events.EndsWith, `"@acme.com"`, `"@example.com"`)},
		"RULE_MATCH 1",
	},
	"semver": {
		[]events.Fact{three, where("app.version", events.SemverAtLeast, `"2.10.0-rc.1"`)},
		"RULE_MATCH 1",
	},
	"number": {[]events.Fact{three, where("company.seats", events.Greater, `100`)}, "RULE_MATCH 1"},
	"time": {
		[]events.Fact{three, where("company.since", events.Before, `"2026-01-01T00:00:00Z"`)},
		"RULE_MATCH 1",
	},
	"array": {[]events.Fact{three, where("groups", events.In, `"staff"`)}, "RULE_MATCH 1"},
	"negate": {
		[]events.Fact{
			three,
			ruled(
				events.Rule{
					ID:         "r",
					Serve:      toA,
					Conditions: []events.Condition{{Attribute: "company.banned", Op: events.Exists, Negate: true}},
				},
			),
		},
		"RULE_MATCH 1",
	},
	"ten-rules": {[]events.Fact{three, ruled(ten()...)}, "RULE_MATCH 1"},
}

// where serves a if a condition holds.
func where(attribute string, op events.Operator, values ...string) events.Fact {
	return ruled(
		events.Rule{
			ID:         "r",
			Serve:      toA,
			Conditions: []events.Condition{{Attribute: attribute, Op: op, Values: raw("[" + strings.Join(values, ",") + "]")}},
		},
	)
}

func thousand(format string) []string {
	values := make([]string, 1000)
	for i := range values {
		values[i] = fmt.Sprintf(format, i)
	}
	return values
}

// ten returns ten rules, of which the last one matches.
func ten() []events.Rule {
	list := make([]events.Rule, 10)
	for i := range list {
		list[i] = when(fmt.Sprint(i), fmt.Sprint("plan-", i), toB)
	}
	list[9] = when("last", "pro", toA)
	return list
}

func user() *evaluation.Context {
	return &evaluation.Context{TargetingKey: "0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77", Attributes: attributes(`{
		"plan": "pro", "email": "user-742@example.com", "company": {"id": "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21", "seats": 512.50, "since": "2025-05-06T07:08:09+02:00"},
		"app": {"version": "2.10.0"}, "groups": ["sales", "staff"], "country": "DE", "language": "de"
	}`)}
}

// filled returns a tenant with one flag of each shape and n others.
func filled(flags int) *Snapshot {
	s := New(Options{})
	page := events.Page{Events: []events.Recorded{
		recorded("tenant-t", 1, events.TenantCreated{ID: "t"}),
		recorded("tenant-t", 2, events.EnvironmentAdded{Environment: production}),
	}}
	add := func(key string, facts ...events.Fact) {
		for i, fact := range facts {
			page.Events = append(page.Events, recorded(events.FlagStream("t", key), events.Revision(i+1), fact))
		}
	}
	for i := range flags {
		add(fmt.Sprintf("flag-%d", i), made(events.BooleanFlag, "false"), on)
	}
	for key, shape := range shapes {
		add(key, append([]events.Fact{shape.facts[0], on}, shape.facts[1:]...)...)
	}
	s.apply(page, slog.New(slog.DiscardHandler))
	return s
}

// evaluate does the work of a request: it finds the tenant, the environment and the flag, and evaluates it.
func (s *Snapshot) evaluate(key string, x *evaluation.Context) (evaluation.Result, error) {
	t, _ := s.Tenant("t")
	e, _ := t.Environment("production")
	f, _ := t.Flag(key)
	return f.Evaluate(e.ID, x)
}

func TestEvaluateAllocatesNothing(t *testing.T) {
	s, x := filled(0), user()
	for key, shape := range shapes {
		t.Run(key, func(t *testing.T) {
			if r, err := s.evaluate(key, x); err != nil || fmt.Sprintf("%s %s", r.Reason, r.Value) != shape.want {
				t.Errorf("it serves %+v, %v, want %s", r, err, shape.want)
			}
			for name, x := range map[string]*evaluation.Context{
				"a user": x, "nobody": {}, "a long key": {TargetingKey: strings.Repeat("long", 1000), Attributes: attributes(`{"company":{"id":` + strings.Repeat("9", 1000) + `}}`)},
				"wrong types": {Attributes: attributes(`{"plan":1,"email":[1,["x"]],"company":{"id":true,"seats":"1","since":"yesterday"},"app":{"version":"v1"},"groups":"staff"}`)},
			} {
				least := math.Inf(1) // background work, such as the cache of patterns, counts in some runs too
				for range 5 {
					least = min(least, testing.AllocsPerRun(100, func() { _, _ = s.evaluate(key, x) }))
				}
				if least != 0 {
					t.Errorf("%s: %v allocations", name, least)
				}
			}
		})
	}
}

// BenchmarkEvaluate evaluates every shape in a tenant with many flags, and the most common one in a tenant with few,
// which must not be faster.
func BenchmarkEvaluate(b *testing.B) {
	x := user()
	for flags, keys := range map[int][]string{10: {"boolean", "rule", "rollout"}, 10_000: slices.Sorted(maps.Keys(shapes))} {
		s := filled(flags)
		for _, key := range keys {
			b.Run(fmt.Sprintf("%s/flags=%d", key, flags), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if r, err := s.evaluate(key, x); err != nil || r.Reason == evaluation.Archived {
						b.Fatal(r, err)
					}
				}
			})
		}
	}
}

// BenchmarkEvaluateMany evaluates 100 flags for one user: half are boolean, the others of all shapes.
func BenchmarkEvaluateMany(b *testing.B) {
	s, x := filled(10_000), user()
	var keys []string
	for len(keys) < 100 {
		keys = append(keys, fmt.Sprintf("flag-%d", 37*len(keys)))
		for key := range shapes {
			if len(keys) < 100 && len(keys)%2 == 1 {
				keys = append(keys, key, fmt.Sprintf("flag-%d", 37*len(keys)))
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		t, _ := s.Tenant("t")
		e, _ := t.Environment("production")
		for _, key := range keys {
			f, _ := t.Flag(key)
			if _, err := f.Evaluate(e.ID, x); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkPublish applies one change of a flag to a tenant with many: a toggle, one rule with a condition, or 100
// rules with three conditions, with some or many regular expressions, new or repeated.
func BenchmarkPublish(b *testing.B) {
	hundred := func(patterns, from int) []events.Rule {
		list := make([]events.Rule, 100)
		for i := range list {
			list[i] = events.Rule{
				ID: fmt.Sprint("rule-", i), Salt: "AAAAAAAAAAAAAAAAAAAAAAAAAA", Serve: rolled("company.id", half("a"), half("b")),
				Conditions: []events.Condition{
					{Attribute: "plan", Op: events.In, Values: raw(`["pro","team","enterprise",1,2.5]`)},
					{Attribute: "app.version", Op: events.SemverAtLeast, Values: raw(`["1.2.3-rc.1"]`)},
					{Attribute: "email", Op: events.EndsWith, Values: raw(fmt.Sprintf(`["@%d.example.com","@acme.com"]`, i))},
				},
			}
			if i < patterns {
				list[i].Conditions[2] = events.Condition{
					Attribute: "email",
					Op:        events.Matches,
					Values:    raw(fmt.Sprintf(`["^user-%d@(example|acme)\\.com$"]`, i+from)),
				}
			}
		}
		return list
	}
	changed := hundred(100, 0)
	changed[50].Conditions = changed[51].Conditions
	s, log := filled(10_000), slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		name  string
		facts []events.Fact
	}{
		{"switch", []events.Fact{on}}, {"rules=1", []events.Fact{ruled(when("r", "pro", toA))}}, {"rules=100", []events.Fact{ruled(hundred(0, 0)...)}},
		{"rules=100,patterns=10", []events.Fact{ruled(hundred(10, 0)...), ruled(hundred(10, 10)...)}}, {"rules=100,patterns=100", []events.Fact{ruled(hundred(100, 0)...), ruled(hundred(100, 100)...)}},
		{"rules=100,patterns=100,changed=1", []events.Fact{
			events.ChangeRules(production, hundred(100, 0), changed), events.ChangeRules(production, changed, hundred(100, 0)),
		}},
	} {
		var pages []events.Page
		for _, fact := range c.facts {
			pages = append(pages, events.Page{Events: []events.Recorded{recorded(events.FlagStream("t", "rule"), 10, fact)}})
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.apply(pages[i%len(pages)], log)
			}
		})
	}
	if s.Faults() > 0 {
		b.Error("the rules were not published")
	}
}

// BenchmarkMemory holds 1,000 tenants with 1,000 flags that are on in both environments. Half are boolean, half text
// with two variations; every tenth has a rule in each environment. It shares no memory that facts from a store would
// not share.
func BenchmarkMemory(b *testing.B) {
	const tenants, flags = 1_000, 1_000
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, log := New(Options{}), slog.New(slog.DiscardHandler)
		for i := range tenants {
			s.apply(populated(i, flags), log)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(s)
		if s.Faults() > 0 {
			b.Error("there were faults")
		}
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(tenants*flags*2), "bytes/flag-environment")
	b.ReportMetric(0, "ns/op")
}

// populated returns the facts of a tenant with its flags. No two texts share memory, as in facts from a store.
func populated(tenant, flags int) events.Page {
	page := events.Page{}
	add := func(stream string, facts ...events.Fact) {
		for i, fact := range facts {
			page.Events = append(page.Events, recorded(stream, events.Revision(i+1), fact))
		}
	}
	uuid := func(kind byte, n int) string { return fmt.Sprintf("0198c5a1-%c%03x-7b10-9d0c-%012d", kind, tenant, n) }
	own := strings.Clone
	id := uuid('1', tenant)
	environments := func() [2]events.EnvironmentRef {
		return [2]events.EnvironmentRef{
			{ID: uuid('e', 1), Name: own("production")},
			{ID: uuid('e', 2), Name: own("development")},
		}
	}
	add(events.TenantStream(id), events.TenantCreated{ID: id, Name: "Tenant"},
		events.EnvironmentAdded{Environment: environments()[0]}, events.EnvironmentAdded{Environment: environments()[1]})
	add(events.ProjectStream(uuid('d', 1)), events.ProjectCreated{ID: uuid('d', 1), TenantID: id, Name: "Project"})
	for i := range flags {
		key := fmt.Sprintf("checkout.new-flow-%d", i)
		created := events.FlagCreated{
			TenantID:     own(id),
			Key:          own(key),
			ID:           uuid('f', i),
			Name:         own(key),
			Type:         events.BooleanFlag,
			DefaultValue: json.RawMessage("false"),
			ProjectID:    uuid('d', 1),
			Salt:         rand.Text(),
			Description:  own("What it is for"),
			Tags:         []string{own("web"), own("checkout")},
		}
		serve := func() events.Serve { return events.Serve{Value: json.RawMessage("false")} }
		if i%2 == 0 {
			created.Type, created.DefaultValue = events.StringFlag, json.RawMessage(`"control"`)
			created.Variations = []events.Variation{
				{
					ID:     uuid('a', i),
					Name:   own("control"),
					Value:  json.RawMessage(`"control"`),
					Weight: 50_000,
				},
				{ID: uuid('b', i), Name: own("new flow"), Value: json.RawMessage(`"new-flow"`), Weight: 50_000},
			}
			serve = func() events.Serve {
				return rolled(own("company.id"), events.Share{VariationID: uuid('a', i), Weight: 20_000},
					events.Share{VariationID: uuid('b', i), Weight: 80_000})
			}
		}
		facts := []events.Fact{created}
		for n, e := range environments() {
			facts = append(facts, events.FlagEnabled{Environment: e})
			if i%20 == 0 || i%20 == 11 { // of both kinds
				facts = append(facts, rulesIn(e, events.Rule{
					ID: uuid('c', 2*i+n), Name: own("beta testers"), Salt: rand.Text(), Serve: serve(), Conditions: []events.Condition{
						{
							Attribute: own("plan"),
							Op:        events.In,
							Values:    raw(`["pro","team"]`),
						},
						{Attribute: own("company.country"), Op: events.In, Values: raw(`["DE"]`), Negate: true},
					},
				}))
			}
		}
		add(events.FlagStream(id, key), facts...)
	}
	return page
}

func recorded(stream string, revision events.Revision, fact events.Fact) events.Recorded {
	return events.Recorded{Event: events.Event{Fact: fact}, Stream: stream, Revision: revision, Name: fact.StoredName()}
}
