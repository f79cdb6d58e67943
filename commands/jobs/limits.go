package jobs

import (
	"fmt"

	"flagledger/events"
)

// ListLimits lists the limits of mails, which all nodes count together in Postgres.
func ListLimits() []events.Limit {
	mails := func(name, value, beyond string, status int) events.Limit {
		return events.Limit{
			Group: events.RateLimits, Name: name, Value: value, Per: "e-mail address", Nodes: events.AllNodes,
			Status: status, Beyond: beyond,
		}
	}
	in := events.PeriodText
	perHour := fmt.Sprintf("%d in %s", maxMails, in(mailWindow))
	return []events.Limit{
		mails("mails of invitations", perHour, "mailed later, within "+in(slotWait), 0),
		mails("mails with links to sandboxes", perHour, "mailed later, within "+in(slotWait), 0),
		mails("links to sandboxes", fmt.Sprintf("%d in %s", maxSandboxLinks, in(sandboxLinkWindow)), "not mailed", 0),
		mails("links that verify the address", fmt.Sprintf("%d in %s, one in %s", maxVerifications,
			in(verificationWindow), in(verificationInterval)), "", 429),
		mails("links to a new password", fmt.Sprintf("%d in %s, then one in %s", maxResets, in(requestsKept),
			in(resetInterval)), "not mailed", 0),
	}
}
