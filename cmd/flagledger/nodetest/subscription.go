package nodetest

import (
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
)

// Subscribe records a subscription of the client's tenant, as after a report of the payment provider. The client's node
// shows it at once.
func (c *Client) Subscribe(s events.Subscription) {
	c.Service.T.Helper()
	set := commands.SetSubscription{
		TenantRef:    commands.TenantRef{TenantID: c.Tenant},
		Subscription: s,
		Now:          c.Service.Config.Now(),
	}
	by := writer.BySystem("test")
	_, done, err := writer.Do(c.Service.T.Context(), c.Service.Node.API.Writer, by, set)
	if err != nil || done.Stale {
		c.Service.T.Fatalf("set a subscription: %+v, %v", done, err)
	}
}
