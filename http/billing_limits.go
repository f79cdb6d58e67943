package http

import (
	"flagledger/events"
)

// maxDiscounts is enforced by huma. A test compares the OpenAPI document with it.
const maxDiscounts = 1

// billingLimits lists the limits of billing.
func billingLimits() []events.Limit {
	return []events.Limit{
		requestLimit("an event of Stripe", events.SizeText(maxWebhook), "request", 400, ""),
		fieldLimit(maxDiscounts, "", 422, "discounts"),
	}
}
