package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
)

// PlanName is a plan. Its schema lists all plans.
type PlanName events.Plan

// Schema implements huma.SchemaProvider.
func (PlanName) Schema(huma.Registry) *huma.Schema {
	return PlanSchema("A plan", events.AnyPlan)
}

// PlanSchema returns the schema of the plans whose terms are chosen.
func PlanSchema(description string, chosen func(events.PlanTerms) bool) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: description}
	for _, name := range events.PlanNames(chosen) {
		s.Enum = append(s.Enum, name)
	}
	return s
}

// SubscriptionSummary is the part of a subscription that every response about a tenant includes.
type SubscriptionSummary struct {
	Plan   PlanName `json:"plan" doc:"The plan in force" example:"free"`
	Status string   `json:"status" doc:"The state of the subscription; active if there is none" example:"active"`
}

// Summarize returns a subscription for a response.
func (a *Core) Summarize(s events.Subscription, sandbox bool) SubscriptionSummary {
	status := s.Status
	if status == events.NoSubscription {
		status = events.Active
	}
	return SubscriptionSummary{Plan: PlanName(s.PlanAt(a.Now(), sandbox)), Status: string(status)}
}

// BillingCycle returns nil if there is no paid subscription.
func BillingCycle(s events.Subscription) *events.BillingCycle {
	if !s.Status.Manageable() || s.BillingCycle == "" {
		return nil
	}
	return &s.BillingCycle
}
