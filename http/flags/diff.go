package flags

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"flagledger/http/rest"
	"flagledger/queries"
)

func (a *API) addDiff() {
	diff := rest.Operation("GET", "/api/v1/flags/{flagKey}/diff", "compare-flag-versions", "Flags",
		"What changed of a flag between two versions or times")
	diff.Description = "The answer is 404 if the flag did not exist at one of them, and names which."
	rest.Register(a.Core, rest.ReadFlags, diff,
		func(ctx context.Context, in *struct {
			VersionsPath
			rest.DiffInput
		}) (*struct{ Body rest.DiffBody }, error) {
			ends, err := in.Ends(ctx, a.Core, "tenant.")
			if err != nil {
				return nil, err
			}
			slot, err := a.EnterPast(ctx)
			if err != nil {
				return nil, err
			}
			defer slot.Leave()
			var flags [2]*wholeFlag
			for i, end := range ends {
				_, flags[i], err = a.wholeFlagAt(ctx, in.Key, end.Moment)
				if errors.Is(err, queries.ErrNotFound) || err == nil && flags[i] == nil {
					return nil, rest.NewProblem(http.StatusNotFound, "the flag did not exist at `"+end.Name+"`")
				}
				if err != nil {
					return nil, err
				}
			}
			body, err := compareFlags(*flags[0], *flags[1])
			return &struct{ Body rest.DiffBody }{body}, err
		})
}

// compareFlags returns the differences between two versions.
func compareFlags(before, after wholeFlag) (rest.DiffBody, error) {
	body, err := rest.NewDiff(before.Version, after.Version, before, after)
	if err != nil {
		return body, err
	}
	var fields [2]map[string]json.RawMessage
	for i, f := range []FlagFields{before.FlagFields, after.FlagFields} {
		if err := json.Unmarshal(rest.EncodeJSON(f), &fields[i]); err != nil {
			return body, err
		}
		for _, always := range []string{"version", "createdAt", "updatedAt"} { // differ in any two versions
			delete(fields[i], always)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields[0])) {
		body.Add(name, nil, rest.Value(fields[0][name]), rest.Value(fields[1][name]))
	}
	body.AddLists("variations", nil, rest.ByID(before.Variations, variationID), rest.ByID(after.Variations, variationID))
	names := maps.Clone(before.Environments)
	maps.Copy(names, after.Environments)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, to := before.Environments[name], after.Environments[name]
		body.Add("enabled", &name, from.Enabled, to.Enabled)
		body.AddLists("rules", &name, rest.ByID(from.Rules, ruleID), rest.ByID(to.Rules, ruleID))
		body.Add("fallthrough", &name, from.Fallthrough, to.Fallthrough)
		body.Add("prerequisites", &name, from.Prerequisites, to.Prerequisites)
	}
	return body, nil
}

func variationID(v variationBody) string { return v.ID }

func ruleID(r rest.RuleBody) string { return r.ID }
