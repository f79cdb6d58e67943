package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
)

// servesOf and offNow are prerequisites of flags.
func servesOf(key string, values ...events.ServedValue) events.Prerequisite {
	return events.Prerequisite{FlagKey: key, Serves: values}
}

func offNow(key string) events.Prerequisite { return events.Prerequisite{FlagKey: key, Off: true} }

func variationOf(id string) events.ServedValue { return events.ServedValue{VariationID: id} }

func valueOf(text string) events.ServedValue { return events.ServedValue{Value: raw(text)} }

// require is the fact that changes prerequisites in production.
func require(from, to []events.Prerequisite) events.Fact {
	return events.PrerequisitesChanged{Environment: production, From: from, To: to}
}

func TestSetPrerequisites(t *testing.T) {
	others := RequiredFlags{
		"payments": {Type: events.NumberFlag, Variations: []string{"v1", "v2"}},
		"stop":     {Type: events.BooleanFlag},
		"loop":     {Type: events.BooleanFlag, Unusable: "closes a cycle: k → loop → k"},
	}
	given := []events.Fact{created()}
	set := func(list ...events.Prerequisite) SetPrerequisites {
		return SetPrerequisites{
			FlagRef: theFlag, Environment: production, Prerequisites: append([]events.Prerequisite{}, list...), Required: others,
		}
	}
	both := []events.Prerequisite{servesOf("payments", variationOf("v2"), valueOf("1.50")), offNow("stop")}

	t.Run("the list is replaced", func(t *testing.T) {
		when(t, given, set(servesOf("payments", variationOf("v2"), valueOf(" 1.50 ")), offNow("stop"))).then(require(nil, both))
		required := append(given, require(nil, both))
		when(t, required, set(both...)).then()
		when(t, required, set(both[1], both[0])).then(require(both, []events.Prerequisite{both[1], both[0]}))
		when(t, required, set()).then(require(both, nil))
		when(t, given, set()).then()
	})
	t.Run("of its environment alone", func(t *testing.T) {
		elsewhere := events.PrerequisitesChanged{Environment: development, To: both}
		when(t, append(given, elsewhere), set(both[1])).then(require(nil, both[1:]))
	})
	t.Run("the flag must be there, in the expected version", func(t *testing.T) {
		when(t, nil, set()).refused(NotFound)
		old := set()
		old.IfVersions = []events.Revision{7}
		when(t, given, old).refused(PreconditionFailed)
	})

	var many []events.Prerequisite
	var values []events.ServedValue
	for i := range maxPrerequisites + 1 {
		many = append(many, offNow(fmt.Sprint("f", i)))
		others[fmt.Sprint("f", i)] = RequiredFlag{Type: events.JSONFlag}
	}
	for i := range maxServedValues + 1 {
		values = append(values, valueOf(fmt.Sprint(i)))
	}
	huge := events.ServedValue{Value: json.RawMessage(`"` + strings.Repeat("x", maxPrerequisiteBytes) + `"`)}
	for name, c := range map[string]struct {
		sent  []events.Prerequisite
		wrong []string
	}{
		"not sent":         {nil, []string{"prerequisites"}},
		"too many":         {many, []string{"prerequisites"}},
		"no key":           {[]events.Prerequisite{offNow("")}, []string{"prerequisites[0].flagKey"}},
		"unknown":          {[]events.Prerequisite{offNow("stop"), offNow("none")}, []string{"prerequisites[1].flagKey"}},
		"a cycle":          {[]events.Prerequisite{servesOf("loop", valueOf("true"))}, []string{"prerequisites[0].flagKey"}},
		"twice":            {[]events.Prerequisite{offNow("stop"), servesOf("stop", valueOf("true"))}, []string{"prerequisites[1].flagKey"}},
		"off and serves":   {[]events.Prerequisite{{FlagKey: "stop", Off: true, Serves: []events.ServedValue{valueOf("true")}}}, []string{"prerequisites[0].serves"}},
		"neither":          {[]events.Prerequisite{{FlagKey: "stop"}}, []string{"prerequisites[0].serves"}},
		"too many values":  {[]events.Prerequisite{servesOf("payments", values...)}, []string{"prerequisites[0].serves"}},
		"no value":         {[]events.Prerequisite{servesOf("payments", valueOf("1"), events.ServedValue{})}, []string{"prerequisites[0].serves[1]"}},
		"two in one":       {[]events.Prerequisite{servesOf("payments", events.ServedValue{VariationID: "v1", Value: raw("1")})}, []string{"prerequisites[0].serves[0]"}},
		"a value twice":    {[]events.Prerequisite{servesOf("payments", valueOf("1"), valueOf("1"))}, []string{"prerequisites[0].serves[1]"}},
		"no variation":     {[]events.Prerequisite{servesOf("payments", variationOf("v3"))}, []string{"prerequisites[0].serves[0].variationId"}},
		"another type":     {[]events.Prerequisite{servesOf("payments", variationOf("v1"), valueOf(`"x"`))}, []string{"prerequisites[0].serves[1].value"}},
		"an infinite one":  {[]events.Prerequisite{servesOf("payments", valueOf(`1e999`))}, []string{"prerequisites[0].serves[0].value"}},
		"too large":        {[]events.Prerequisite{servesOf("f0", huge)}, []string{"prerequisites"}},
		"several mistakes": {[]events.Prerequisite{offNow("none"), {FlagKey: "stop"}}, []string{"prerequisites[0].flagKey", "prerequisites[1].serves"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := set()
			cmd.Prerequisites = c.sent
			when(t, given, cmd).refused(Invalid, c.wrong...)
		})
	}
	t.Run("what stays is not checked, so that a broken flag can be repaired", func(t *testing.T) {
		broken := []events.Prerequisite{servesOf("gone", variationOf("v")), servesOf("loop", valueOf("true"))}
		when(t, append(given, require(nil, broken)), set(broken[1])).then(require(broken, broken[1:]))
		when(t, append(given, require(nil, broken)), set(servesOf("gone", variationOf("w")))).
			refused(Invalid, "prerequisites[0].flagKey")
	})
}

func TestFlagsThatOthersRequire(t *testing.T) {
	given := []events.Fact{created(func(f *events.FlagCreated) {
		f.Variations = []events.Variation{{ID: "v1", Name: "low", Value: raw("1")}, {ID: "v2", Name: "high", Value: raw("2")}}
	})}
	archived := events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag}
	users := []Dependent{
		{"checkout", "production", servesOf("k", variationOf("v1"))}, {"checkout", "staging", servesOf("k", valueOf("2"))},
	}
	named := func(facts []events.Fact, cmd Command[state.Flag], want string) {
		t.Helper()
		s := when(t, facts, cmd)
		s.refused(Conflict)
		if !strings.Contains(s.err.Error(), want) {
			t.Errorf("refused with %v, want %s", s.err, want)
		}
	}
	update := func(status events.FlagStatus) UpdateFlag {
		return UpdateFlag{FlagRef: theFlag, Status: &status, Dependents: users}
	}
	named(given, DeleteFlag{theFlag, users}, "checkout in production and staging")
	named(given, update(events.ArchivedFlag), "checkout in production and staging")
	when(t, given, update(events.InactiveFlag)).then(events.FlagStatusChanged{From: events.ActiveFlag, To: events.InactiveFlag})
	when(t, append(given, archived), update(events.ArchivedFlag)).then()
	when(t, given, DeleteFlag{FlagRef: theFlag}).then(events.FlagDeleted{})

	named(given, RemoveVariation{FlagRef: theFlag, ID: "v1", Dependents: users}, `"low" is served: checkout in production`)
	when(t, given, RemoveVariation{FlagRef: theFlag, ID: "v2", Dependents: users}).
		then(events.VariationRemoved{Variation: events.Variation{ID: "v2", Name: "high", Value: raw("2")}})

	added := append(given, events.VariationAdded{Variation: events.Variation{ID: "v3", Name: "top", Value: raw("3")}})
	back := RevertFlag{
		FlagRef: theFlag, To: stateOf[state.Flag](given), Environments: []events.EnvironmentRef{production},
		Dependents: []Dependent{{"checkout", "production", servesOf("k", variationOf("v3"))}},
	}
	named(added, back, `"top" is served: checkout in production`)
	back.To = stateOf[state.Flag](append(given, archived))
	back.To.Version = 9
	named(given, back, "other flags require it: checkout in production")
}

func TestRevertRestoresPrerequisites(t *testing.T) {
	earlier := []events.Prerequisite{servesOf("payments", variationOf("v1")), offNow("stop")}
	before := []events.Fact{created(), require(nil, earlier)}
	given := append(before, require(earlier, nil))
	back := func(found RequiredFlags) RevertFlag {
		return RevertFlag{
			FlagRef: theFlag, To: stateOf[state.Flag](before), Environments: []events.EnvironmentRef{production, development},
			EnvironmentsAt: []events.EnvironmentRef{production}, Required: map[string]RequiredFlags{production.ID: found},
		}
	}
	usable := RequiredFlags{"payments": {Variations: []string{"v1"}}, "stop": {}}
	reverted := events.FlagReverted{Version: 2}
	when(t, given, back(usable)).then(require(nil, earlier), reverted)
	t.Run("of one environment", func(t *testing.T) {
		only := back(usable)
		only.Only = &development
		when(t, given, only).then()
		only.Only = &production
		when(t, given, only).then(require(nil, earlier), events.FlagReverted{Version: 2, Environment: &production})
	})
	t.Run("of a deleted flag", func(t *testing.T) {
		when(t, append(given, events.FlagDeleted{}), back(usable)).then(before[0], require(nil, earlier), reverted)
	})
	t.Run("not what is gone or closes a cycle", func(t *testing.T) {
		when(t, given, back(RequiredFlags{"payments": usable["payments"]})).refused(Conflict)
		when(t, given, back(RequiredFlags{"payments": {}, "stop": {}})).refused(Conflict)
		looped := RequiredFlags{"payments": usable["payments"], "stop": {Unusable: "closes a cycle: k → stop → k"}}
		when(t, given, back(looped)).refused(Conflict)
	})
	t.Run("what is there already stays", func(t *testing.T) {
		when(t, append(before, events.FlagUpdated{Description: &events.Change[string]{To: "new"}}), back(nil)).
			then(events.FlagUpdated{Description: &events.Change[string]{From: "new", To: ""}}, reverted)
	})
	t.Run("not in an environment that is gone", func(t *testing.T) {
		gone := back(usable)
		gone.Environments = gone.Environments[1:]
		when(t, given, gone).refused(Conflict)
	})
}
