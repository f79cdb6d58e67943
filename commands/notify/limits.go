package notify

import (
	"flagledger/events"
)

// ListLimits lists the limits that this package enforces.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.FieldLimit(maxNotificationTitle, events.UnitCharacters, 422, "title"),
		events.FieldLimit(maxNotificationWord, events.UnitCharacters, 422, "type", "actionType", "referenceId",
			"deviceName"),
		events.FieldLimit(maxNotificationBody, events.UnitCharacters, 422, "body"),
		events.FieldLimit(maxNotificationIcon, events.UnitCharacters, 422, "icon"),
		events.FieldLimit(maxNotificationData, events.UnitBytes, 422, "data"),
		events.FieldLimit(maxDeviceToken, events.UnitCharacters, 422, "deviceToken"),
	}
}
