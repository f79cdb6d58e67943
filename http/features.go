package http

import (
	"context"
	"fmt"
	"strings"

	"flagledger/events"
	"flagledger/http/rest"
)

// Features maps each feature to the lowest plan that includes it.
type Features map[events.Feature]events.Plan

// ParseFeatures reads features such as "analytics=standard,experiments=enhanced". Others have their defaults.
func ParseFeatures(text string) (Features, error) {
	features := Features(events.FeaturePlans())
	for entry := range events.SettingEntries(text) {
		feature, required := events.Feature(entry.Name), events.Plan(entry.Value)
		if _, known := features[feature]; !known {
			return nil, fmt.Errorf("%q is not one of the features %s, %s, %s", feature, events.Analytics, events.Experiments,
				events.Multivariate)
		}
		if !required.Known() {
			return nil, fmt.Errorf("%q must name a plan for %s: %s", entry.Text, feature,
				strings.Join(events.PlanNames(events.AnyPlan), ", "))
		}
		features[feature] = required
	}
	return features, nil
}

type featureBody struct {
	HasAccess    bool          `json:"hasAccess" example:"true"`
	Plan         rest.PlanName `json:"plan" doc:"The plan in force" example:"standard"`
	RequiredPlan rest.PlanName `json:"requiredPlan" doc:"The lowest plan that includes the feature" example:"standard"`
}

type featureOutput struct{ Body featureBody }

// addFeatures adds the operations that check the features of a plan.
func (a *API) addFeatures() {
	check := func(feature events.Feature, tail, summary string) {
		op := rest.Operation("GET", "/api/v1/billing/features/"+tail, "check-"+string(feature), "Billing", summary)
		rest.Register(a.Core, rest.Access{Who: rest.Viewer}, op,
			func(ctx context.Context, _ *rest.TenantInput) (*featureOutput, error) {
				plan, required := rest.PrincipalOf(ctx).Tenant.Plan(a.Now()), a.options.Features[feature]
				return &featureOutput{
					featureBody{HasAccess: plan.Includes(required), Plan: rest.PlanName(plan), RequiredPlan: rest.PlanName(required)},
				}, nil
			})
	}
	check(events.Analytics, "analytics", "Whether the plan of a tenant includes analytics")
	check(events.Experiments, "experiments/check", "Whether the plan of a tenant includes A/B tests")
	check(events.Multivariate, "multivariate/check", "Whether the plan of a tenant includes multivariate tests")
}
