package flags

import (
	"context"

	"flagledger/http/rest"
	"flagledger/queries"
)

type historyEntry struct {
	ID          string            `json:"id" example:"0198c5a1-9c51-7f3d-8b26-5e7d9f1a3b42"`
	Action      string            `json:"action" enum:"created,updated,status_changed,enabled,disabled,variation_added,variation_updated,variation_removed,rules_changed,fallthrough_changed,prerequisites_changed,deleted,reverted,members_added,members_removed,forgotten" doc:"The last three are of segments: see dependencies"`
	Changes     rest.Value        `json:"changes" doc:"Each changed field with from and to. A variation's fields are named variations.<id>.<field>. Added, removed or changed rules are rules.<id>, as a whole, null if absent; rules.order lists the ids of all rules if rules were added, removed or moved. reverted names the version, and the time if one was requested" example:"{\"enabled\":{\"from\":false,\"to\":true}}"`
	UserID      string            `json:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	UserName    string            `json:"userName" doc:"The display name, or else the address, or else the userId; \"erased user\" if the person was erased" example:"Ada"`
	Timestamp   rest.RecordedTime `json:"timestamp"`
	Environment *string           `json:"environment" nullable:"true" doc:"null for a change of the whole flag" example:"production"`
	Version     int64             `json:"version" doc:"The number of the event in the flag's stream" example:"7"`
	ActorType   string            `json:"actorType" enum:"user,client,system"`
	RequestID   string            `json:"requestId" example:"0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Reason      string            `json:"reason" doc:"From X-Change-Reason" example:"launch day"`
	Dependency  *dependencyBody   `json:"dependency,omitempty" doc:"Whose event it is, if not the flag's: a flag that it required then, or a segment that it used. Only with dependencies=true"`
}

type dependencyBody struct {
	Type string `json:"type" enum:"flag,segment" example:"segment"`
	Key  string `json:"key" example:"beta"`
}

func showEntry(e queries.HistoryEntry) historyEntry {
	var dependency *dependencyBody
	if e.Type != "" {
		dependency = (*dependencyBody)(&e.Dependency)
	}
	return historyEntry{
		ID:          e.ID,
		Action:      e.Action,
		Changes:     rest.Value(e.Changes),
		UserID:      e.ActorID,
		UserName:    rest.ActorName(e.Actor),
		Timestamp:   rest.RecordedTime(e.Timestamp),
		Environment: e.Environment,
		Version:     e.Version,
		ActorType:   e.ActorKind,
		RequestID:   e.RequestID,
		Reason:      e.Reason,
		Dependency:  dependency,
	}
}

type historyInput struct {
	rest.TenantInput
	rest.PageInput
	rest.PeriodInput
	Key               string `path:"flagKey" example:"new-checkout"`
	Action            string `query:"action" enum:"created,updated,status_changed,enabled,disabled,variation_added,variation_updated,variation_removed,rules_changed,fallthrough_changed,prerequisites_changed,deleted,reverted,members_added,members_removed,forgotten" doc:"The last three are of segments: see dependencies"`
	UserID            string `query:"userId"`
	EnvironmentFilter string `query:"environment" doc:"Only changes in this environment"`
	Dependencies      bool   `query:"dependencies" doc:"true adds the events of the flags that the flag required and of the segments that its rules used, in any environment and also through others, while it did so. The filters hold for them too"`
	Environment       string `header:"X-Environment" doc:"Must be one of the tenant's; the history shows all environments"`
}

func (a *API) addHistory() {
	rest.Register(
		a.Core,
		rest.ReadFlags,
		rest.Operation("GET", "/api/v1/flags/{flagKey}/history", "get-flag-history", "Flags",
			"All events of a flag's key, newest first"),
		func(ctx context.Context, in *historyInput) (*rest.ListOutput[historyEntry], error) {
			filter := queries.HistoryFilter{
				Action:      in.Action,
				UserID:      a.PersonID(in.UserID),
				Environment: in.EnvironmentFilter,
				From:        in.From,
				To:          in.To,

				Dependencies: in.Dependencies,
			}
			if in.Dependencies {
				slot, err := a.EnterPast(ctx)
				if err != nil {
					return nil, err
				}
				defer slot.Leave()
			}
			list, err := a.Queries.History(ctx, rest.PrincipalOf(ctx).Tenant.ID(), "flag", in.Key, filter, in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showEntry)
		},
	)
}
