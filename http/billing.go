package http

import (
	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
)

// planName is a plan. The document lists those that there are.
type planName events.Plan

// Schema implements huma.SchemaProvider.
func (planName) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: "The plan in force"}
	for _, terms := range events.Plans {
		s.Enum = append(s.Enum, string(terms.Plan))
	}
	return s
}

// subscriptionSummary is what every answer about a tenant says of its subscription.
type subscriptionSummary struct {
	Plan   planName `json:"plan" example:"free"`
	Status string   `json:"status" doc:"The state of the subscription, as Stripe names it; active where nothing is paid" example:"active"`
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
