package http

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
)

// planName is a plan. The document lists those that there are.
type planName events.Plan

// Schema implements huma.SchemaProvider.
func (planName) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: "A plan"}
	for _, terms := range events.Plans {
		s.Enum = append(s.Enum, string(terms.Plan))
	}
	return s
}

// subscriptionSummary is what every answer about a tenant says of its subscription.
type subscriptionSummary struct {
	Plan   planName `json:"plan" doc:"The plan in force" example:"free"`
	Status string   `json:"status" doc:"The state of the subscription; active where there is none" example:"active"`
}

func (a *API) summarize(s events.Subscription, sandbox bool) subscriptionSummary {
	status := s.Status
	if status == events.NoSubscription {
		status = events.Active
	}
	return subscriptionSummary{Plan: planName(s.PlanAt(a.Now(), sandbox)), Status: string(status)}
}

// billingCycle is null where there is no subscription that is paid.
func billingCycle(s events.Subscription) *events.BillingCycle {
	if !s.Status.Manageable() || s.BillingCycle == "" {
		return nil
	}
	return &s.BillingCycle
}

type subscriptionBody struct {
	ID                 *string    `json:"id" nullable:"true" doc:"At the payment provider; null where there is no subscription" example:"sub_1OqTAY2eZvKYlo2C"`
	Plan               planName   `json:"plan" doc:"The plan in force" example:"standard"`
	Status             string     `json:"status" enum:"none,incomplete,incomplete_expired,trialing,active,past_due,unpaid,canceled,paused" doc:"The state of the subscription, as Stripe names it, or none" example:"active"`
	CurrentPeriodStart *timestamp `json:"currentPeriodStart" nullable:"true"`
	CurrentPeriodEnd   *timestamp `json:"currentPeriodEnd" nullable:"true"`
	CancelAtPeriodEnd  bool       `json:"cancelAtPeriodEnd" example:"false"`
}

type subscriptionOutput struct{ Body subscriptionBody }

type featureBody struct {
	HasAccess    bool     `json:"hasAccess" example:"true"`
	Plan         planName `json:"plan" doc:"The plan in force" example:"standard"`
	RequiredPlan planName `json:"requiredPlan" doc:"The lowest plan that includes the feature" example:"standard"`
}

type featureOutput struct{ Body featureBody }

func (a *API) addBilling() {
	const tag, path = "Billing", "/api/v1/billing"
	read := operation("GET", path+"/subscription", "get-subscription", tag, "The subscription of a tenant")
	read.Description = "A plan ends with its paid period; the tenant then has the plan free, a sandbox the plan sandbox. While a payment is missing, the plan stays for seven days; so it does while the renewal of a subscription has not been heard of from Stripe."
	register(a, access{who: viewer}, read, func(ctx context.Context, _ *TenantInput) (*subscriptionOutput, error) {
		tenant := principalOf(ctx).tenant
		s := tenant.Subscription()
		body := subscriptionBody{
			Plan: planName(tenant.Plan(a.Now())), Status: string(s.Status), CurrentPeriodStart: unlessZero(s.PeriodStart), CurrentPeriodEnd: unlessZero(s.PeriodEnd),
			CancelAtPeriodEnd: s.CancelAtPeriodEnd,
		}
		if s.ID != "" {
			body.ID = &s.ID
		}
		return &subscriptionOutput{body}, nil
	})

	check := func(feature events.Feature, tail, summary string) {
		op := operation("GET", path+"/features/"+tail, "check-"+string(feature), tag, summary)
		register(a, access{who: viewer}, op, func(ctx context.Context, _ *TenantInput) (*featureOutput, error) {
			plan, required := principalOf(ctx).tenant.Plan(a.Now()), a.Features[feature]
			return &featureOutput{featureBody{HasAccess: plan.Includes(required), Plan: planName(plan), RequiredPlan: planName(required)}}, nil
		})
	}
	check(events.Analytics, "analytics", "Whether the plan of a tenant includes analytics")
	check(events.Experiments, "experiments/check", "Whether the plan of a tenant includes A/B tests")
	check(events.Multivariate, "multivariate/check", "Whether the plan of a tenant includes multivariate tests")
}

func unlessZero(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	return new(timestamp(t))
}

// Features is the lowest plan that includes each feature.
type Features map[events.Feature]events.Plan

// ParseFeatures reads features such as "analytics=standard,experiments=enhanced". Those that it does not name keep their defaults.
func ParseFeatures(text string) (Features, error) {
	features := Features(events.FeaturePlans())
	for entry := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, plan, _ := strings.Cut(entry, "=")
		feature, required := events.Feature(strings.TrimSpace(name)), events.Plan(strings.TrimSpace(plan))
		if _, known := features[feature]; !known {
			return nil, fmt.Errorf("%q is none of the features %s, %s, %s", feature, events.Analytics, events.Experiments, events.Multivariate)
		}
		if !required.Known() {
			return nil, fmt.Errorf("%q must name a plan for %s: %s", entry, feature, events.PlanNames())
		}
		features[feature] = required
	}
	return features, nil
}
