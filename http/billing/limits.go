package billing

import (
	"flagledger/events"
	"flagledger/http/rest"
)

// maxDiscounts is enforced by huma. A test compares the OpenAPI document with it.
const maxDiscounts = 1

// ListLimits lists the limits of billing.
func ListLimits() []events.Limit {
	return []events.Limit{
		rest.RequestLimit("an event of Stripe", events.SizeText(maxWebhook), "request", 400, ""),
		events.FieldLimit(maxDiscounts, "", 422, "discounts"),
	}
}
