package queries

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"flagledger/projections/models/modelstest"
)

// trail inserts entries of the tenant t, each "flag a action changes" or "flag a environment:action changes", and
// returns queries.
func trail(t *testing.T, entries ...string) *Queries {
	t.Helper()
	pool := modelstest.Pool(t)
	for n, entry := range entries {
		part := strings.SplitN(entry, " ", 4)
		environment, action, found := strings.Cut(part[2], ":")
		if !found {
			environment, action = "", part[2]
		}
		stream := part[0]
		if stream == "environment" {
			stream, action = "tenant", "environment_"+action
		}
		_, err := pool.Exec(t.Context(), `insert into read.audit (tenant_id, n, commit, prepare, id, recorded, action,
			resource_type, resource_id, environment, changes, actor_kind, actor_id, request_id, reason, version, leaf)
			values ('t', $1, $1, $1, gen_random_uuid(), now(), $2, $3, $4, nullif($5, ''), $6, 'system', '', '', '', 1, '')`,
			n, stream+"."+action, part[0], part[1], environment, part[3])
		if err != nil {
			t.Fatal(err)
		}
	}
	return New(pool, emptyStore{}, holdsAll, nil)
}

// rule returns changes of a rule, which uses a segment before and another after; an empty one is no rule.
func rule(from, to string) string {
	of := func(segment string) string {
		if segment == "" {
			return "null"
		}
		return fmt.Sprintf(`{"conditions":[{"attribute":"plan","op":"in","values":["x"]},
			{"op":"in_segment","values":[%q]}]}`, segment)
	}
	return fmt.Sprintf(`{"rules.1":{"from":%s,"to":%s},"rules.order":{"from":[],"to":["1"]}}`, of(from), of(to))
}

// require returns changes of what a flag requires.
func require(from, to string) string {
	of := func(key string) string {
		if key == "" {
			return "[]"
		}
		return fmt.Sprintf(`[{"flagKey":%q,"off":true}]`, key)
	}
	return fmt.Sprintf(`{"prerequisites":{"from":%s,"to":%s}}`, of(from), of(to))
}

// historyOf lists the entries in the history of a flag with its dependencies, newest first.
func historyOf(t *testing.T, q *Queries, key string) string {
	t.Helper()
	list, err := q.History(t.Context(), "t", "flag", key, HistoryFilter{Dependencies: true}, Page{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := list.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range rows {
		text := e.Action
		if e.Type != "" {
			text += " of " + e.Type + " " + e.Key
		}
		all = append(all, text)
	}
	if list.Total != len(all) {
		t.Errorf("the total is %d of %d", list.Total, len(all))
	}
	return strings.Join(all, ", ")
}

func TestHistoryWithDependencies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entries []string
		want    string
	}{
		"has changes of a segment while rules use it": {[]string{
			"segment s created {}",
			"flag a created {}",
			"segment s updated {}",
			"flag a rules_changed " + rule("", "s"),
			"segment s members_added {}",
			"segment other members_added {}",
			"flag s updated {}",
			"flag a rules_changed " + rule("s", ""),
			"segment s deleted {}",
		}, "rules_changed, members_added of segment s, rules_changed, created"},
		"goes on while another rule uses the segment": {[]string{
			"flag a rules_changed " + rule("", "s"),
			"flag a rules_changed " + rule("", "s"),
			"flag a rules_changed " + rule("s", "s"),
			"flag a rules_changed " + rule("s", ""),
			"segment s updated {}",
			"flag a rules_changed " + rule("s", "x"),
			"segment s members_added {}",
			"segment x members_removed {}",
		}, "members_removed of segment x, rules_changed, updated of segment s" + strings.Repeat(", rules_changed", 4)},
		"reaches through flags and segments, at the same time alone": {[]string{
			"flag b rules_changed " + rule("", "s"),
			"segment s rules_changed " + rule("", "deep"),
			"segment deep updated {}",
			"flag a prerequisites_changed " + require("", "b"),
			"segment deep members_added {}",
			"flag b enabled {}",
			"segment s rules_changed " + rule("deep", ""),
			"segment deep members_removed {}",
			"flag a prerequisites_changed " + require("b", ""),
			"flag b disabled {}",
		}, "prerequisites_changed, rules_changed of segment s, enabled of flag b, members_added of segment deep, prerequisites_changed"},
		"ends with what is deleted": {[]string{
			"flag a prerequisites_changed " + require("", "b"),
			"flag b rules_changed " + rule("", "s"),
			"flag b deleted {}",
			"segment s members_added {}",
			"flag b created {}",
			"flag a deleted {}",
			"flag b updated {}",
		}, "deleted, created of flag b, deleted of flag b, rules_changed of flag b, prerequisites_changed"},
		"ends with the environment that is deleted": {[]string{
			"flag a qa:rules_changed " + rule("", "s"),
			"flag a qa:prerequisites_changed " + require("", "b"),
			"flag a production:prerequisites_changed " + require("", "b"),
			"segment s updated {}",
			"environment e1 qa:deleted {}",
			"segment s members_added {}",
			"flag b enabled {}",
			"flag a production:prerequisites_changed " + require("b", ""),
			"flag b disabled {}",
			"flag a qa:rules_changed " + rule("", "s"), // raced the deletion
			"segment s members_removed {}",
			"environment e2 qa:added {}",
			"segment s members_removed {}",
			"flag a qa:rules_changed " + rule("", "s"),
			"segment s deleted {}",
		}, "deleted of segment s, rules_changed, " + // of the later environment, and the change that raced the deletion
			"rules_changed, prerequisites_changed, enabled of flag b, updated of segment s, prerequisites_changed, " +
			"prerequisites_changed, rules_changed"},
		"ends in a cycle": {[]string{
			"flag a prerequisites_changed " + require("", "b"),
			"flag b prerequisites_changed " + require("", "a"),
			"flag a enabled {}",
		}, "enabled, prerequisites_changed of flag b, prerequisites_changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := historyOf(t, trail(t, test.entries...), "a"); got != test.want {
				t.Errorf("the history has %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestSpansOfDependenciesAreJoined(t *testing.T) {
	t.Parallel()
	q := trail(t,
		"flag a rules_changed "+rule("", "s"),
		"flag a prerequisites_changed "+require("", "b"),
		"flag b rules_changed "+rule("", "s"),
		"flag a rules_changed "+rule("s", ""),
		"flag b rules_changed "+rule("s", ""),
		"flag a rules_changed "+rule("", "s"),
	)
	spans, err := q.dependencies(t.Context(), "t", "a")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for d := range maps.Keys(spans) {
		keys = append(keys, d.Type+" "+d.Key)
	}
	slices.Sort(keys)
	if s := spans[Dependency{"segment", "s"}]; len(s) != 2 || s[0] != (span{0, 4}) || s[1].first != 5 ||
		!slices.Equal(keys, []string{"flag a", "flag b", "segment s"}) {
		t.Errorf("the flag depended on %v: %v", keys, spans)
	}
}
