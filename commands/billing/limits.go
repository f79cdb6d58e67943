package billing

import (
	"flagledger/events"
)

// ListLimits lists the limits that this package enforces.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.FieldLimit(maxReturnURL, events.UnitCharacters, 422, "successUrl", "cancelUrl", "returnUrl"),
		events.FieldLimit(maxPaymentID, events.UnitCharacters, 422, "productId", "customerId", "coupon"),
		events.FieldLimit(maxPromoCode, events.UnitCharacters, 422, "promoCode"),
		events.FieldLimit(maxReferral, events.UnitCharacters, 422, "referralId", "affiliate_referral"),
		events.FieldLimit(maxAmount, "", 422, "amount"),
	}
}
