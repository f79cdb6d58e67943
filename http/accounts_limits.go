package http

import (
	"flagledger/events"
)

// maxNotificationLimit is enforced by huma. A test compares the OpenAPI document with it.
const maxNotificationLimit = 100

// accountLimits lists the limits of notifications.
func accountLimits() []events.Limit {
	return []events.Limit{fieldLimit(maxNotificationLimit, "(of notifications)", 422, "limit")}
}
