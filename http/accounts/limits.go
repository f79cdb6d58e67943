package accounts

import (
	"flagledger/events"
)

// maxNotificationLimit is enforced by huma. A test compares the OpenAPI document with it.
const maxNotificationLimit = 100

// ListLimits lists the limits of notifications.
func ListLimits() []events.Limit {
	return []events.Limit{events.FieldLimit(maxNotificationLimit, "(of notifications)", 422, "limit")}
}
