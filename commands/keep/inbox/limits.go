package inbox

import (
	"fmt"

	"flagledger/events"
)

// ListLimits lists the limits of inboxes and devices.
func ListLimits() []events.Limit {
	most := func(name string, n int, beyond string) events.Limit {
		return events.Limit{
			Group: events.PersonLimits, Name: name, Max: n, Per: "person", Nodes: events.AllNodes, Beyond: beyond,
		}
	}
	oldest := "the oldest is removed, read ones first"
	pushes := most("notifications of one tenant that are pushed", 0, "only in the inbox")
	pushes.Value = fmt.Sprintf("%d in %s", maxPushedOfTenant, events.PeriodText(pushWindow))
	return []events.Limit{
		most("notifications", maxNotifications, oldest),
		most("notifications of one tenant", maxOfTenant, oldest),
		pushes,
		most("devices", maxDevices, "the one that was seen longest ago is removed"),
	}
}
