package commands

import (
	"context"

	"flagledger/events"
)

// SessionsEnded makes it known to all nodes which sessions have ended at the identity provider. It may be repeated.
func (w *Writer) SessionsEnded(ctx context.Context, ended EndSessions) error {
	_, _, err := Do(ctx, w, By{Actor: events.Actor{Kind: events.SystemActor, ID: "identity provider"}}, ended)
	return err
}
