package billing

import (
	"flagledger/events"
)

// maxDiscounts is enforced by huma. A test compares the OpenAPI document with it.
const maxDiscounts = 1

// ListLimits lists the limits of billing.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("an event of Stripe", events.SizeText(maxWebhook), 400, ""),
		events.FieldLimit(maxDiscounts, "", 422, "discounts"),
	}
}
