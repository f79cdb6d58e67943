package commands

import (
	"context"

	"flagledger/events"
)

// ReadTenant reads a tenant as it is now, with an empty ID where it does not exist. Its errors are *Error.
func ReadTenant(ctx context.Context, w *Writer, id string) (Tenant, error) {
	t, _, err := load[Tenant](ctx, w, &storeRetry{}, events.TenantStream(id), id)
	return t, err
}

// readUser reads a person's state as it is now. Its errors are *Error.
func readUser(ctx context.Context, w *Writer, id string) (User, error) {
	u, _, err := load[User](ctx, w, &storeRetry{}, events.UserStream(id), "")
	return u, err
}

// ProjectExists reports whether a project exists now. Its errors are *Error.
func ProjectExists(ctx context.Context, w *Writer, id string) (bool, error) {
	p, _, err := load[Project](ctx, w, &storeRetry{}, events.ProjectStream(id), "")
	return p.Exists, err
}

// ReadInvitation reads an invitation to the platform as it is now, with an empty ID where it does not exist. Its errors
// are *Error.
func ReadInvitation(ctx context.Context, w *Writer, id string) (Invitation, error) {
	i, _, err := load[Invitation](ctx, w, &storeRetry{}, events.InvitationStream(id), "")
	return i, err
}
