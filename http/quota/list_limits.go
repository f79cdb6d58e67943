package quota

import (
	"fmt"

	"flagledger/events"
)

// How clients are distinguished, in docs/operate/limits.md.
var (
	PerNetwork = fmt.Sprintf("IPv4 address or IPv6 /%d", networkBits)
	PerSite    = fmt.Sprintf("IPv4 address or IPv6 /%d", siteBits)
	PerWide    = fmt.Sprintf("IPv4 /%d or IPv6 /%d", wideBits, siteBits)
)

// What is counted together, in docs/operate/limits.md: each tenant by itself, but the free tenants of a creator
// together.
const (
	PerTenantOrCreator = "tenant; free: creator"
	PerCreator         = "creator of free tenants"
)

// ListLimits lists the limits of this package. The limits of plans are in events.Plans.
func ListLimits() []events.Limit {
	_, together := FlagBytes{}.free()
	list := []events.Limit{
		{
			Group: events.TenantLimits, Name: "all flags", Max: together, Unit: events.UnitBytes, Per: PerCreator,
			Nodes: events.AllNodes, Status: 409,
		},
		{
			Group: events.RateLimits, Name: "written bytes", Nodes: events.EachNode, Status: 429, Per: PerCreator,
			Value: events.SizeText(DailyBytes(together)) + " a day",
		},
		{
			Group: events.RateLimits, Name: "written bytes until switching and deleting are slowed too", Per: "tenant",
			Value: fmt.Sprintf("%d %% of a day's bytes", SwitchesPercent), Nodes: events.EachNode,
			Beyond: fmt.Sprintf("%d a minute of a person, or of all machines", SwitchesPerMinute),
		},
		{
			Group: events.RateLimits, Name: "requests with all browser keys", Per: PerTenantOrCreator, Nodes: events.EachNode,
			Value: fmt.Sprintf("%d %% of the plan's requests", browserPercent), Status: 429,
		},
		{
			Group: events.RateLimits, Name: "counters of each rate", Max: maxWindows, Nodes: events.EachNode,
			Beyond: "every other one is forgotten",
		},
	}
	for _, w := range table {
		if w.name == "" {
			continue
		}
		row := events.Limit{
			Group: events.RateLimits, Name: w.name, Per: w.per, Nodes: events.EachNode, Beyond: w.beyond,
			Value: fmt.Sprintf("%d in %s", w.max, events.PeriodText(w.period)),
		}
		if w.max == 1 { // a mark
			row.Value = events.PeriodText(w.period)
		}
		if w.beyond == "" {
			row.Status = 429
		}
		list = append(list, row)
	}
	return list
}
