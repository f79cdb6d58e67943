package commands

import (
	"context"

	"flagledger/events"
	"flagledger/events/state"
)

// ReadTenant returns the current state of a tenant, with an empty ID if it does not exist. Errors are *Error.
func ReadTenant(ctx context.Context, w *Writer, id string) (state.Tenant, error) {
	t, _, err := load[state.Tenant](ctx, w, &storeRetry{}, events.TenantStream(id), id)
	return t, err
}

// readUser returns a person's current state. Errors are *Error.
func readUser(ctx context.Context, w *Writer, id string) (state.User, error) {
	u, _, err := load[state.User](ctx, w, &storeRetry{}, events.UserStream(id), "")
	return u, err
}

// ProjectExists reports whether a project exists now. Errors are *Error.
func ProjectExists(ctx context.Context, w *Writer, id string) (bool, error) {
	p, _, err := load[state.Project](ctx, w, &storeRetry{}, events.ProjectStream(id), "")
	return p.Exists, err
}

// ReadInvitation returns the current state of an invitation to the platform, with an empty ID if it does not exist.
// Errors are *Error.
func ReadInvitation(ctx context.Context, w *Writer, id string) (state.Invitation, error) {
	i, _, err := load[state.Invitation](ctx, w, &storeRetry{}, events.InvitationStream(id), "")
	return i, err
}
