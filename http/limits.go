package http

import (
	"slices"

	"flagledger/events"
	"flagledger/http/accounts"
	"flagledger/http/audit"
	"flagledger/http/billing"
	"flagledger/http/evaluation"
	"flagledger/http/flagd"
	"flagledger/http/flags"
	"flagledger/http/rest"
	"flagledger/http/segments"
	"flagledger/http/tenants"
)

// ListLimits lists the limits of this package and its rooms.
func ListLimits() []events.Limit {
	return slices.Concat(rest.ListLimits(), evaluation.ListLimits(), flagd.ListLimits(), flags.ListLimits(),
		segments.ListLimits(),
		audit.ListLimits(), billing.ListLimits(), accounts.ListLimits(), tenants.ListLimits())
}
