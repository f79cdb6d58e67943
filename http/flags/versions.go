package flags

import (
	"context"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

type versionEntry struct {
	Version   int64             `json:"version" example:"7"`
	Timestamp rest.RecordedTime `json:"timestamp" doc:"When the store recorded it. Sent as at, it includes the version"`
	Action    string            `json:"action" doc:"As in the history" example:"enabled"`
	UserID    string            `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	UserName  string            `json:"userName" example:"Ada"`
	Reason    string            `json:"reason" doc:"From X-Change-Reason" example:"launch day"`
}

func showVersionEntry(e queries.HistoryEntry) versionEntry {
	return versionEntry{
		Version:   e.Version,
		Timestamp: rest.RecordedTime(e.Timestamp),
		Action:    e.Action,
		UserID:    e.ActorID,
		UserName:  rest.ActorName(e.Actor),
		Reason:    e.Reason,
	}
}

// wholeFlag is a flag in all environments. Nothing in it depends on the environment of the call.
type wholeFlag struct {
	FlagFields
	Variations   []variationBody              `json:"variations"`
	Environments map[string]flagInEnvironment `json:"environments" doc:"By the names that they had"`
}

type flagInEnvironment struct {
	Enabled     bool                  `json:"enabled" example:"true"`
	Rules       []rest.RuleBody       `json:"rules"`
	Fallthrough rest.FallthroughServe `json:"fallthrough"`

	Prerequisites []prerequisiteBody `json:"prerequisites"`
}

func showWholeFlag(f state.Flag, environments []events.EnvironmentRef) wholeFlag {
	whole := wholeFlag{showFields(f), showVariations(f.Variations), map[string]flagInEnvironment{}}
	for _, e := range environments {
		rules := showRules(f.Version, f.Rules[e.ID], f.FallthroughIn(e.ID)).Body
		whole.Environments[e.Name] = flagInEnvironment{f.Enabled.Has(e.ID), rules.Rules, rules.Fallthrough,
			showPrerequisites(f.PrerequisitesIn(e.ID))}
	}
	return whole
}

type versionBody struct {
	Version   uint64                 `json:"version" example:"7"`
	Timestamp rest.RecordedTime      `json:"timestamp" doc:"When the store recorded the version. Sent as at, it includes the version"`
	Flag      rest.OrNull[wholeFlag] `json:"flag" doc:"In all environments at that time; null for the version that deleted it"`
}

// showVersion shows a version of a flag. whole is nil for a version that deleted it.
func showVersion(f state.Flag, whole *wholeFlag) versionBody {
	return versionBody{Version: uint64(f.Version), Timestamp: rest.RecordedTime(f.UpdatedAt),
		Flag: rest.OrNull[wholeFlag]{Value: whole}}
}

// FlagVersion returns the JSON of a version of a flag, with the environments at that time. The command line prints the
// same.
func FlagVersion(f state.Flag, environments []events.EnvironmentRef) []byte {
	var whole *wholeFlag
	if f.Exists {
		whole = new(showWholeFlag(f, environments))
	}
	return rest.EncodeJSON(showVersion(f, whole))
}

// VersionsPath names a flag in all environments.
type VersionsPath struct {
	rest.TenantInput
	Environment string `header:"X-Environment" doc:"Must be one of the tenant's; the response shows all environments"`
	Key         string `path:"flagKey" example:"new-checkout"`
}

func (a *API) addVersions() {
	const tag, path = "Flags", "/api/v1/flags/{flagKey}"
	rest.Register(
		a.Core,
		rest.ReadFlags,
		rest.Operation("GET", path+"/versions", "list-flag-versions", tag, "The versions of a flag's key, newest first"),
		func(ctx context.Context, in *struct {
			VersionsPath
			rest.PageInput
		}) (*rest.ListOutput[versionEntry], error) {
			tenantID := rest.PrincipalOf(ctx).Tenant.ID()
			list, err := a.Queries.History(ctx, tenantID, "flag", in.Key, queries.HistoryFilter{}, in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showVersionEntry)
		},
	)
	rest.Register(
		a.Core,
		rest.ReadFlags,
		rest.Operation("GET", path+"/versions/{version}", "get-flag-version", tag,
			"A flag as it was at a version, in all environments"),
		func(ctx context.Context, in *struct {
			VersionsPath
			Version int64 `path:"version" minimum:"1" example:"7"`
		}) (*struct{ Body versionBody }, error) {
			slot, err := a.AcquireHistorySlot(ctx, time.Time{})
			if err != nil {
				return nil, err
			}
			defer slot.Leave()
			f, whole, err := a.wholeFlagAt(ctx, in.Key, queries.Moment{Version: events.Revision(in.Version)})
			if err != nil {
				return nil, err
			}
			return &struct{ Body versionBody }{showVersion(f, whole)}, nil
		},
	)
	a.addDiff()
}

// wholeFlagAt reads the historical state of a flag in all environments. whole is nil if the flag was deleted.
func (a *API) wholeFlagAt(
	ctx context.Context, key string, m queries.Moment,
) (f state.Flag, whole *wholeFlag, err error) {
	tenantID := rest.PrincipalOf(ctx).Tenant.ID()
	if f, err = a.Queries.FlagStateAt(ctx, tenantID, key, m); err != nil || !f.Exists {
		return f, nil, err
	}
	environments, err := a.Queries.EnvironmentsAt(ctx, tenantID, m.Time(f))
	if err != nil {
		return f, nil, err
	}
	return f, new(showWholeFlag(f, environments)), nil
}
