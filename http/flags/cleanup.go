package flags

import (
	"context"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/queries"
)

// cleanupFlag is a flag that can be removed.
type cleanupFlag struct {
	FlagKey         string                      `json:"flagKey" example:"new-checkout"`
	Lifecycle       string                      `json:"lifecycle" enum:"unused,settled"`
	Since           string                      `json:"since" format:"date-time" doc:"The last evaluation, also on behalf of another flag, prefetch or change" example:"2026-03-14T15:09:26.535120Z"`
	LastEvaluatedAt *rest.Timestamp             `json:"lastEvaluatedAt" nullable:"true" doc:"null for a flag that was never evaluated"`
	LastRequiredAt  *rest.Timestamp             `json:"lastRequiredAt" nullable:"true" doc:"The last evaluation on behalf of another flag that requires it; null if never"`
	Outcome         rest.OrNull[cleanupOutcome] `json:"outcome" doc:"What a settled flag serves in all environments that evaluate it: this value can replace the flag in code. null for an unused flag, and if environments differ"`
	Clients         []clientUse                 `json:"clients" doc:"The clients that recently evaluated it most, the most active first"`
	RequiredBy      []string                    `json:"requiredBy" doc:"Keys of the flags that require it. While there are any, it can be neither archived nor deleted" example:"[\"new-checkout\"]"`
}

type cleanupOutcome struct {
	VariationID   *string    `json:"variationId" nullable:"true" doc:"null if the value is not a variation" example:"0198c5a1-9e3b-7f42-b6d8-5c1a7e2f4b09"`
	VariationName *string    `json:"variationName" nullable:"true" example:"on"`
	Value         rest.Value `json:"value"`
}

func showCleanupFlag(s queries.Staleness) func(queries.CleanupFlag) cleanupFlag {
	return func(f queries.CleanupFlag) cleanupFlag {
		body := cleanupFlag{
			FlagKey:         f.Key,
			Lifecycle:       string(f.Lifecycle(s)),
			Since:           showSince(f),
			LastEvaluatedAt: (*rest.Timestamp)(f.LastEvaluated),
			LastRequiredAt:  (*rest.Timestamp)(f.LastRequired),
			Clients:         showClients(f.Clients),
			RequiredBy:      f.RequiredBy,
		}
		if f.SameOutcome && body.Lifecycle == string(queries.Settled) {
			body.Outcome.Value = &cleanupOutcome{f.VariationID, f.VariationName, rest.Value(f.Value)}
		}
		return body
	}
}

// showSince formats the time of a change with six digits, as in facts, and the time of an evaluation as a timestamp.
func showSince(f queries.CleanupFlag) string {
	since := f.Since()
	if since.Equal(f.UpdatedAt) {
		return rest.RecordedTime(since).String()
	}
	return rest.Timestamp(since).String()
}

// CleanupEntry returns the JSON of a flag in the list of cleanups. The command line prints the same.
func CleanupEntry(f queries.CleanupFlag, s queries.Staleness) []byte {
	return rest.EncodeJSON(showCleanupFlag(s)(f))
}

func (a *API) addCleanup() {
	op := rest.Operation("GET", "/api/v1/cleanup", "list-cleanup", "Flags",
		"The flags that can be removed, and what can replace them")
	op.Description = "Flags that are `unused` or `settled`, the longest first. Permanent flags are never listed. " +
		"A flag with `requiredBy` can only be removed once these flags no longer require it."
	rest.Register(a.Core, rest.Access{Who: rest.Viewer, Scope: events.FlagsRead}, op,
		func(ctx context.Context, in *struct {
			rest.TenantInput
			rest.PageInput
		}) (*rest.ListOutput[cleanupFlag], error) {
			tenant := rest.PrincipalOf(ctx).Tenant
			stale := a.staleness(tenant)
			list, err := a.Queries.Cleanup(ctx, tenant.ID(), stale, tenant.FlagsChanged(), in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showCleanupFlag(stale))
		})
}
