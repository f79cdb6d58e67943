package billing

import (
	"context"
	"time"

	"flagledger/http/rest"
)

type subscriptionBody struct {
	ID                 *string         `json:"id" nullable:"true" doc:"The id at the payment provider; null without a subscription" example:"sub_1OqTAY2eZvKYlo2C"`
	Plan               rest.PlanName   `json:"plan" doc:"The plan in force" example:"standard"`
	Status             string          `json:"status" enum:"none,incomplete,incomplete_expired,trialing,active,past_due,unpaid,canceled,paused" doc:"The state of the subscription, as Stripe names it, or none" example:"active"`
	CurrentPeriodStart *rest.Timestamp `json:"currentPeriodStart" nullable:"true"`
	CurrentPeriodEnd   *rest.Timestamp `json:"currentPeriodEnd" nullable:"true"`
	CancelAtPeriodEnd  bool            `json:"cancelAtPeriodEnd" example:"false"`
	Payments           bool            `json:"payments" doc:"Whether the service takes payments; otherwise its operator gives plans" example:"true"`
}

type subscriptionOutput struct{ Body subscriptionBody }

func (a *API) addBilling() {
	read := rest.Operation("GET", "/api/v1/billing/subscription", "get-subscription", "Billing",
		"The subscription of a tenant")
	read.Description = "A plan ends with its paid period. The tenant then has the plan free, or sandbox if it is a " +
		"sandbox. The plan continues for some days if a payment is missing, or if Stripe has not reported the renewal yet."
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, read,
		func(ctx context.Context, _ *rest.TenantInput) (*subscriptionOutput, error) {
			tenant := rest.PrincipalOf(ctx).Tenant
			s := tenant.Subscription()
			return &subscriptionOutput{subscriptionBody{
				ID:                 rest.TextOrNull(s.ID),
				Plan:               rest.PlanName(tenant.Plan(a.Now())),
				Status:             string(s.Status),
				CurrentPeriodStart: optionalTimestamp(s.PeriodStart),
				CurrentPeriodEnd:   optionalTimestamp(s.PeriodEnd),
				CancelAtPeriodEnd:  s.CancelAtPeriodEnd,
				Payments:           a.Billing.Configured(),
			}}, nil
		})
}

func optionalTimestamp(t time.Time) *rest.Timestamp {
	if t.IsZero() {
		return nil
	}
	return new(rest.Timestamp(t))
}
