package commands

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
)

var (
	beta    = events.SegmentCreated{TenantID: "t", Key: "beta", ID: "g", Name: "beta"}
	betaRef = SegmentRef{TenantID: "t", Key: "beta"}
)

func inSegment(keys ...string) events.Condition {
	c := events.Condition{Op: events.InSegment}
	for _, key := range keys {
		c.Values = append(c.Values, raw(fmt.Sprintf("%q", key)))
	}
	return c
}

func segmentRule(id string, conditions ...events.Condition) events.Rule {
	return events.Rule{ID: id, Conditions: conditions}
}

func TestSegments(t *testing.T) {
	given := []events.Fact{beta}
	create := CreateSegment{TenantID: "t", Key: "beta", ID: "g"}
	t.Run("create", func(t *testing.T) {
		when(t, nil, create).then(beta)
		when(t, given, create).refused(Conflict)
		when(t, []events.Fact{beta, events.SegmentDeleted{}}, create).then(beta)
		full := create
		full.SegmentCount = MaxSegments
		when(t, nil, full).refused(Conflict)
		when(t, nil, CreateSegment{TenantID: "t", Key: "-", Name: new(""), Tags: []string{""}}).
			refused(Invalid, "key", "name", "tags[0]")
		withRules := create
		withRules.Rules = []NewRule{{NewID: "r", Salt: "s", Conditions: []events.Condition{inSegment("staff")}}}
		when(t, nil, withRules).then(beta, events.SegmentRulesChanged{
			Added: []events.Rule{segmentRule("r", inSegment("staff"))},
			Order: &events.Change[[]string]{From: []string{}, To: []string{"r"}},
		})
	})
	t.Run("update", func(t *testing.T) {
		when(t, given, UpdateSegment{SegmentRef: betaRef, Name: new("B"), Tags: &[]string{"x"}}).then(events.SegmentUpdated{
			Name: &events.Change[string]{From: "beta", To: "B"}, Tags: &events.Change[[]string]{To: []string{"x"}},
		})
		when(t, given, UpdateSegment{SegmentRef: betaRef, Name: new("beta")}).then()
		when(t, nil, UpdateSegment{SegmentRef: betaRef}).refused(NotFound)
		old := betaRef
		old.IfVersions = []events.Revision{7}
		when(t, given, UpdateSegment{SegmentRef: old}).refused(PreconditionFailed)
	})
	t.Run("a private one", func(t *testing.T) {
		private := beta
		private.Private, private.SaltID = true, "s1"
		creation := create
		creation.SaltID = "s1"
		when(t, nil, creation).then(private)
		salt := make([]byte, state.SaltBytes)
		add := ChangeMembers{SegmentRef: betaRef, List: events.Included, Add: []string{"ada"}, SaltID: "s1"}
		if err := HashMembers(salt, add.Add, nil); err != nil {
			t.Fatal(err)
		}
		const ada = "V6HJRRGeAVQmlq90PwcDTw" // SHA-256 of 17 zero bytes and "ada"
		added := events.SegmentMembersAdded{List: events.Included, Hashes: []string{ada}}
		given := []events.Fact{private}
		when(t, given, add).then(added)
		when(t, given, ChangeMembers{SegmentRef: betaRef, List: events.Included, Add: []string{"ada"}}).refused(Conflict)
		given = append(given, added)
		when(t, given, add).then()
		remove := ChangeMembers{SegmentRef: betaRef, List: events.Included, Remove: add.Add, SaltID: "s1"}
		when(t, given, remove).then(events.SegmentMembersRemoved{List: events.Included, Hashes: []string{ada}})
		when(t, []events.Fact{beta}, ForgetMembers{betaRef, "s2"}).refused(Conflict)
		when(t, given, ForgetMembers{betaRef, "s2"}).then(events.SegmentForgotten{SaltID: "s2"})
		given = append(given, events.SegmentForgotten{SaltID: "s2"})
		when(t, given, add).refused(Conflict)
		when(t, given, RevertSegment{SegmentRef: betaRef, To: state.Segment{SegmentCreated: private, Exists: true, Version: 2}}).
			refused(Conflict)
		again := add
		again.SaltID = "s2"
		when(t, given, again).then(added) // the hash differs with a real salt
		if err := HashMembers(nil, []string{"ada"}, nil); KindOf(err) != Conflict {
			t.Errorf("a lost salt: %v", err)
		}
		if err := HashMembers(salt, []string{""}, nil); KindOf(err) != Invalid {
			t.Errorf("an empty member: %v", err)
		}
	})
	t.Run("delete", func(t *testing.T) {
		when(t, given, DeleteSegment{SegmentRef: betaRef}).then(events.SegmentDeleted{})
		when(t, given, DeleteSegment{SegmentRef: betaRef, Users: []string{"the flag f"}}).refused(Conflict)
	})
}

func TestSegmentRules(t *testing.T) {
	given := []events.Fact{beta, events.ChangeSegmentRules(nil, []events.Rule{segmentRule("r1", inSegment("staff"))})}
	set := func(rules ...NewRule) SetSegmentRules { return SetSegmentRules{SegmentRef: betaRef, Rules: rules} }
	kept := NewRule{ID: new("r1"), Conditions: []events.Condition{inSegment("staff")}}
	when(t, given, set(kept)).then()
	when(t, given, SetSegmentRules{SegmentRef: betaRef}).refused(Invalid, "rules")
	bad := set(kept, NewRule{Conditions: []events.Condition{
		inSegment("gone"), {Attribute: "plan", Op: events.InSegment, Values: nil},
		{Attribute: "$now", Op: events.In, Values: []json.RawMessage{raw(`"x"`)}},
		{Attribute: "$other", Op: events.Exists},
		{Attribute: "$environment", Op: events.In, Values: []json.RawMessage{raw(`"production"`)}},
	}})
	bad.Unusable = SegmentErrors{"gone": "does not exist"}
	when(t, given, bad).refused(Invalid, "rules[1].conditions[0].values[0]", "rules[1].conditions[1].attribute",
		"rules[1].conditions[1].values", "rules[1].conditions[2].attribute", "rules[1].conditions[3].attribute")
	var many []string
	for i := range maxSegmentsUsed + 1 {
		many = append(many, fmt.Sprint("s", i))
	}
	when(t, given, set(NewRule{Conditions: []events.Condition{inSegment(many...)}})).refused(Invalid, "rules")
}

func TestSegmentMembers(t *testing.T) {
	given := []events.Fact{beta, events.SegmentMembersAdded{List: events.Included, Members: []string{"a", "b"}}}
	change := func(add, remove []string) ChangeMembers {
		return ChangeMembers{SegmentRef: betaRef, List: events.Included, Add: add, Remove: remove}
	}
	when(t, given, change([]string{"c", "a", "c"}, []string{"b", "x"})).then(
		events.SegmentMembersRemoved{List: events.Included, Members: []string{"b"}},
		events.SegmentMembersAdded{List: events.Included, Members: []string{"c"}})
	when(t, given, change([]string{"a"}, []string{"x"})).then()
	when(t, given, change([]string{"", strings.Repeat("x", 257), "a\n", "y"}, []string{"y"})).
		refused(Invalid, "add[0]", "add[1]", "add[2]", "remove[0]")
	when(t, given, change(make([]string, MaxMemberChanges+1), nil)).refused(Invalid, "add")
	when(t, given, ChangeMembers{SegmentRef: betaRef, List: "others", Add: []string{"a"}}).refused(Invalid, "list")

	var many []string
	for i := range 2500 {
		many = append(many, fmt.Sprintf("m%05d", i))
	}
	facts, err := change(many, nil).Decide(stateOf[state.Segment](given))
	if err != nil || len(facts) != 3 {
		t.Errorf("2,500 members are %d facts, %v", len(facts), err)
	}
	full := stateOf[state.Segment](given)
	for len(many) < maxSegmentSize-2 {
		many = append(many, fmt.Sprintf("m%05d", len(many)))
	}
	full.Included = full.Included.With(many)
	if _, err := change([]string{"z"}, nil).Decide(full); KindOf(err) != Conflict {
		t.Errorf("a member over the limit: %v", err)
	}
	if _, err := change([]string{"z"}, []string{"a"}).Decide(full); err != nil {
		t.Errorf("a member in place of another: %v", err)
	}
}

func TestRevertSegment(t *testing.T) {
	rules := events.ChangeSegmentRules(nil, []events.Rule{segmentRule("r1", inSegment("staff"))})
	added := events.SegmentMembersAdded{List: events.Excluded, Members: []string{"a", "b"}}
	given := []events.Fact{beta, rules, added}
	to := stateOf[state.Segment](given)
	given = append(given, events.SegmentMembersRemoved{List: events.Excluded, Members: []string{"a"}},
		events.SegmentMembersAdded{List: events.Included, Members: []string{"c"}})
	reverted := events.SegmentReverted{Version: 3}
	when(t, given, RevertSegment{SegmentRef: betaRef, To: to}).then(
		events.SegmentMembersRemoved{List: events.Included, Members: []string{"c"}},
		events.SegmentMembersAdded{List: events.Excluded, Members: []string{"a"}}, reverted)
	when(t, given, RevertSegment{SegmentRef: betaRef, To: stateOf[state.Segment](given)}).then()
	gone := append(slices.Clone(given), events.SegmentDeleted{})
	missing := RevertSegment{SegmentRef: betaRef, To: to, Unusable: SegmentErrors{"staff": "is gone"}}
	when(t, gone, missing).refused(Conflict)
	without := append(slices.Clone(given), events.ChangeSegmentRules(to.Rules, nil))
	when(t, without, missing).refused(Conflict)
	when(t, given, missing).then( // what the segment refers to now may stay
		events.SegmentMembersRemoved{List: events.Included, Members: []string{"c"}},
		events.SegmentMembersAdded{List: events.Excluded, Members: []string{"a"}}, reverted)
	when(t, gone, RevertSegment{SegmentRef: betaRef, To: to}).then(beta, rules, added, reverted)
	when(t, gone, RevertSegment{SegmentRef: betaRef, To: to, SegmentCount: MaxSegments}).refused(Conflict)
}

func TestRulesOfFlagsReferToSegments(t *testing.T) {
	given := []events.Fact{split}
	set := SetRules{
		FlagRef: FlagRef{TenantID: "t", Key: split.Key}, Environment: production,
		Rules: []NewRule{sentRule("", func(r *NewRule) { r.Conditions = []events.Condition{inSegment("beta")} })},
	}
	when(t, given, set).then(events.ChangeRules(production, nil, []events.Rule{{
		ID: "new", Name: "n", Salt: "new salt", Conditions: []events.Condition{inSegment("beta")},
		Serve: events.Serve{VariationID: "v1"},
	}}))
	set.Unusable = SegmentErrors{"beta": "does not exist"}
	when(t, given, set).refused(Invalid, "rules[0].conditions[0].values[0]")
	set.Unusable = nil

	deleted := events.EnvironmentRef{ID: "gone", Name: "gone"}
	var used []string
	for i := range maxSegmentsUsed {
		used = append(used, fmt.Sprint("s", i))
	}
	given = append(given, events.ChangeRules(deleted, nil, []events.Rule{{
		ID: "r", Conditions: []events.Condition{inSegment(used...)}, Serve: events.Serve{VariationID: "v1"},
	}}))
	set.Environments = []events.EnvironmentRef{production, deleted}
	when(t, given, set).refused(Invalid, "rules")
	set.Environments = set.Environments[:1]
	if facts, err := set.Decide(stateOf[state.Flag](given)); err != nil || len(facts) != 1 {
		t.Errorf("beside the rules of a deleted environment: %v, %v", facts, err)
	}
}

// Forgetting reaches all lives of a key, whether or not there is a private segment now.
func TestForgetAllLivesOfAKey(t *testing.T) {
	first, second := beta, beta
	first.Private, first.SaltID = true, "s1"
	second.ID, second.Private, second.SaltID = "g2", true, "s2"
	plain := beta
	plain.ID = "g3"
	member := events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}}
	firstLife := stateOf[state.Segment]([]events.Fact{first})
	deleted := []events.Fact{first, events.SegmentDeleted{}}
	for name, c := range map[string]struct {
		given []events.Fact
		want  events.SegmentForgotten
	}{
		"a deleted one": {deleted, events.SegmentForgotten{}},
		"another life":  {append(slices.Clone(deleted), second), events.SegmentForgotten{SaltID: "s3"}},
		"a plain one":   {append(slices.Clone(deleted), plain, member), events.SegmentForgotten{}},
	} {
		t.Run(name, func(t *testing.T) {
			when(t, c.given, ForgetMembers{betaRef, "s3"}).then(c.want)
			after := append(slices.Clone(c.given), c.want)
			when(t, after, RevertSegment{SegmentRef: betaRef, To: firstLife}).refused(Conflict)
			if before := stateOf[state.Segment](c.given); before.Exists && !before.Private {
				s := stateOf[state.Segment](after)
				if s.Included.Len() != 1 {
					t.Errorf("a plain segment keeps %d members", s.Included.Len())
				}
			}
		})
	}
	when(t, nil, ForgetMembers{betaRef, "s3"}).refused(NotFound)
	when(t, []events.Fact{beta, events.SegmentDeleted{}}, ForgetMembers{betaRef, "s3"}).refused(NotFound)
	when(t, append(slices.Clone(deleted), second), RevertSegment{SegmentRef: betaRef, To: firstLife}).
		then(events.SegmentDeleted{}, first, events.SegmentReverted{Version: 1})
}
