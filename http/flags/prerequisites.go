package flags

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

// prerequisiteBody is a prerequisite, in requests and responses.
type prerequisiteBody struct {
	FlagKey string            `json:"flagKey" doc:"The other flag, of any project of the tenant" example:"payments"`
	Off     bool              `json:"off,omitzero" doc:"The other flag must be off. Absent if it must serve something" example:"false"`
	Serves  []rest.ServedBody `json:"serves,omitempty" maxItems:"50" doc:"The other flag must be on and serve one of these. Absent if it must be off"`
}

func showPrerequisites(list []events.Prerequisite) []prerequisiteBody {
	shown := make([]prerequisiteBody, len(list))
	for i, p := range list {
		shown[i] = prerequisiteBody{FlagKey: p.FlagKey, Off: p.Off, Serves: rest.ShowServed(p.Serves)}
	}
	return shown
}

// sentPrerequisites returns the prerequisites of a request, nil if they were not sent.
func sentPrerequisites(sent []prerequisiteBody) []events.Prerequisite {
	if sent == nil {
		return nil
	}
	list := make([]events.Prerequisite, len(sent))
	for i, p := range sent {
		list[i] = events.Prerequisite{FlagKey: p.FlagKey, Off: p.Off}
		for _, s := range p.Serves {
			list[i].Serves = append(list[i].Serves,
				events.ServedValue{VariationID: events.CanonicalID(s.VariationID), Value: json.RawMessage(s.Value)})
		}
	}
	return list
}

type prerequisitesBody struct {
	Prerequisites []prerequisiteBody `json:"prerequisites" maxItems:"20" doc:"All must be met, or the flag is off in the environment"`
}

type prerequisitesOutput struct {
	rest.Changed
	ETag string `header:"ETag" doc:"The flag's version, for If-Match"`
	Body prerequisitesBody
}

var examplePrerequisites = map[string]any{
	"prerequisites": []any{
		map[string]any{
			"flagKey": "payments",
			"serves":  []any{map[string]any{"variationId": rest.ExampleVariation}, map[string]any{"value": true}},
		},
		map[string]any{"flagKey": "kill-checkout", "off": true},
	},
}

func (a *API) addPrerequisites() {
	const tag, path = "Prerequisites", "/api/v1/flags/{flagKey}/prerequisites"
	get := rest.Operation("GET", path, "get-prerequisites", tag, "What a flag requires of other flags in an environment")
	get.Description = rest.HistoryText
	rest.Register(a.Core, rest.ReadFlagsAt, rest.WithExamples(get, nil, examplePrerequisites),
		func(ctx context.Context, in *FlagRead) (*prerequisitesOutput, error) {
			if then, environment, asked, err := in.past(ctx, a); asked {
				shown := showPrerequisites(then.PrerequisitesIn(environment.ID))
				return &prerequisitesOutput{Body: prerequisitesBody{shown}}, err
			}
			p := rest.PrincipalOf(ctx)
			found, err := a.Queries.Prerequisites(ctx, p.Tenant.ID(), p.Environment.ID, in.Key)
			if err != nil {
				return nil, err
			}
			list := make([]events.Prerequisite, len(found.Prerequisites))
			for i, required := range found.Prerequisites {
				list[i] = required.Prerequisite
			}
			return &prerequisitesOutput{
				ETag: rest.ETag(events.Revision(found.Version)), Body: prerequisitesBody{showPrerequisites(list)},
			}, nil
		})
	set := rest.Operation("PUT", path, "set-prerequisites", tag, "Replace what a flag requires of other flags")
	set.Description = "Replaces the prerequisites in the environment; an empty list removes all. While one is not met, " +
		"the flag is off there and answers its default value. Flags cannot require each other in a cycle, in long " +
		"chains, or too many others. A list that changes nothing creates no event. " + growFlagText
	set.Errors = append(set.Errors, http.StatusConflict)
	rest.Register(a.Core, rest.ChangeFlags, rest.WithExamples(set, examplePrerequisites, examplePrerequisites),
		func(ctx context.Context, in *struct {
			FlagChange
			Body prerequisitesBody
		}) (*prerequisitesOutput, error) {
			p := rest.PrincipalOf(ctx)
			cmd := commands.SetPrerequisites{
				FlagRef:       in.ref(ctx),
				Environment:   p.Environment.EnvironmentRef,
				Prerequisites: sentPrerequisites(in.Body.Prerequisites),
			}
			leave, err := a.EnterChanges(ctx) // checking what other flags require may take long
			if err != nil {
				return nil, err
			}
			defer leave()
			cmd.Required = requiredBySent(p.Tenant, cmd)
			flag, done, err := rest.Do(ctx, a.Writer, cmd)
			if err != nil {
				return nil, err
			}
			return &prerequisitesOutput{
				Changed: rest.ChangeHeaders(done), ETag: rest.ETag(flag.Version),
				Body: prerequisitesBody{showPrerequisites(flag.PrerequisitesIn(cmd.Environment.ID))},
			}, nil
		})
}

// requiredBySent finds the flags that a command names.
func requiredBySent(tenant *snapshot.Tenant, cmd commands.SetPrerequisites) commands.RequiredFlags {
	var before, keys []string // those that it requires already come first: a limit is exceeded by others
	if f, exists := tenant.Flag(cmd.Key); exists {
		before = f.State().RequiredFlags(cmd.Environment.ID)
	}
	for _, known := range []bool{true, false} {
		for _, p := range cmd.Prerequisites {
			if slices.Contains(before, p.FlagKey) == known && !slices.Contains(keys, p.FlagKey) {
				keys = append(keys, p.FlagKey)
			}
		}
	}
	return requiredFlags(tenant, cmd.Key, cmd.Environment.ID, keys)
}

// requiredFlags finds flags by keys for one that is to require them all in an environment.
func requiredFlags(tenant *snapshot.Tenant, flagKey, environmentID string, keys []string) commands.RequiredFlags {
	if len(keys) == 0 {
		return nil
	}
	found := commands.RequiredFlags{}
	unusable := tenant.UnusablePrerequisites(flagKey, environmentID, keys)
	for _, key := range keys {
		f, exists := tenant.Flag(key)
		if !exists && key != flagKey {
			continue
		}
		required := commands.RequiredFlag{Unusable: unusable[key]}
		if exists {
			required.Type = f.State().Type
			for _, v := range f.State().Variations {
				required.Variations = append(required.Variations, v.ID)
			}
		}
		found[key] = required
	}
	return found
}

// dependents returns the flags that require a flag.
func dependents(tenant *snapshot.Tenant, key string) (list []commands.Dependent) {
	for _, d := range tenant.Dependents(key) {
		list = append(list, commands.Dependent{
			FlagKey: d.FlagKey, Environment: d.Environment.Name, Prerequisite: d.Prerequisite,
		})
	}
	return list
}

// requiredAt finds the flags that an earlier state of a flag required, by environment id.
func requiredAt(tenant *snapshot.Tenant, f *state.Flag) map[string]commands.RequiredFlags {
	found := map[string]commands.RequiredFlags{}
	for environmentID := range f.Prerequisites {
		found[environmentID] = requiredFlags(tenant, f.Key, environmentID, f.RequiredFlags(environmentID))
	}
	return found
}
