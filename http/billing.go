package http

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
)

// planName is a plan. Its schema lists all plans.
type planName events.Plan

// Schema implements huma.SchemaProvider.
func (planName) Schema(huma.Registry) *huma.Schema {
	return planSchema("A plan", events.AnyPlan)
}

// planSchema returns the schema of the plans whose terms are chosen.
func planSchema(description string, chosen func(events.PlanTerms) bool) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: description}
	for _, name := range events.PlanNames(chosen) {
		s.Enum = append(s.Enum, name)
	}
	return s
}

// subscriptionSummary is the part of a subscription that every response about a tenant includes.
type subscriptionSummary struct {
	Plan   planName `json:"plan" doc:"The plan in force" example:"free"`
	Status string   `json:"status" doc:"The state of the subscription; active if there is none" example:"active"`
}

func (a *API) summarize(s events.Subscription, sandbox bool) subscriptionSummary {
	status := s.Status
	if status == events.NoSubscription {
		status = events.Active
	}
	return subscriptionSummary{Plan: planName(s.PlanAt(a.Now(), sandbox)), Status: string(status)}
}

// billingCycle returns nil if there is no paid subscription.
func billingCycle(s events.Subscription) *events.BillingCycle {
	if !s.Status.Manageable() || s.BillingCycle == "" {
		return nil
	}
	return &s.BillingCycle
}

type subscriptionBody struct {
	ID                 *string    `json:"id" nullable:"true" doc:"The id at the payment provider; null without a subscription" example:"sub_1OqTAY2eZvKYlo2C"`
	Plan               planName   `json:"plan" doc:"The plan in force" example:"standard"`
	Status             string     `json:"status" enum:"none,incomplete,incomplete_expired,trialing,active,past_due,unpaid,canceled,paused" doc:"The state of the subscription, as Stripe names it, or none" example:"active"`
	CurrentPeriodStart *timestamp `json:"currentPeriodStart" nullable:"true"`
	CurrentPeriodEnd   *timestamp `json:"currentPeriodEnd" nullable:"true"`
	CancelAtPeriodEnd  bool       `json:"cancelAtPeriodEnd" example:"false"`
}

type subscriptionOutput struct{ Body subscriptionBody }

func (a *API) addBilling() {
	read := operation("GET", "/api/v1/billing/subscription", "get-subscription", "Billing", "The subscription of a tenant")
	read.Description = "A plan ends with its paid period. The tenant then has the plan free, or sandbox if it is a " +
		"sandbox. The plan continues for some days if a payment is missing, or if Stripe has not reported the renewal yet."
	register(a, access{who: viewer}, read, func(ctx context.Context, _ *TenantInput) (*subscriptionOutput, error) {
		tenant := principalOf(ctx).tenant
		s := tenant.Subscription()
		return &subscriptionOutput{subscriptionBody{
			ID:                 textOrNull(s.ID),
			Plan:               planName(tenant.Plan(a.Now())),
			Status:             string(s.Status),
			CurrentPeriodStart: optionalTimestamp(s.PeriodStart),
			CurrentPeriodEnd:   optionalTimestamp(s.PeriodEnd),
			CancelAtPeriodEnd:  s.CancelAtPeriodEnd,
		}}, nil
	})
}

func optionalTimestamp(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	return new(timestamp(t))
}
