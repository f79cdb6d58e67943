package queries

import (
	"fmt"

	"flagledger/events"
)

// ListLimits lists the limits of reads and of their caches.
func ListLimits() []events.Limit {
	of := func(name, value, per string, status int, beyond string) events.Limit {
		return events.Limit{
			Group: events.RequestLimits, Name: name, Value: value, Per: per, Status: status, Beyond: beyond,
		}
	}
	count, size := events.CountText, events.SizeText
	return []events.Limit{
		of("facts looked at for a page of the audit trail", count(maxExamined), "answer", 0, "the page ends early"),
		{
			Group: events.MemoryLimits, Name: "cached keys of lists of flags", Nodes: events.EachNode,
			Value:  fmt.Sprintf("%s, %d lists of a tenant, %s of a list", size(maxCacheBytes), tenantLists, size(maxListBytes)),
			Beyond: "read from the database",
		},
	}
}
