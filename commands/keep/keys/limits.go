package keys

import "flagledger/events"

// ListLimits lists the limits of tokens.
func ListLimits() []events.Limit {
	return []events.Limit{events.RequestLimit("a token", events.SizeText(maxToken), 401, "")}
}
