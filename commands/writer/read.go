package writer

import (
	"context"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

// ReadTenant returns the current state of a tenant, with an empty ID if it does not exist. Errors are *commands.Error.
func ReadTenant(ctx context.Context, w *Writer, id string) (state.Tenant, error) {
	t, _, err := load[state.Tenant](ctx, w, &storeRetry{}, events.TenantStream(id), id)
	return t, err
}

// ReadUser returns a person's current state. Errors are *commands.Error.
func ReadUser(ctx context.Context, w *Writer, id string) (state.User, error) {
	u, _, err := load[state.User](ctx, w, &storeRetry{}, events.UserStream(id), "")
	return u, err
}

// ProjectExists reports whether a project exists now. Errors are *commands.Error.
func ProjectExists(ctx context.Context, w *Writer, id string) (bool, error) {
	p, _, err := load[state.Project](ctx, w, &storeRetry{}, events.ProjectStream(id), "")
	return p.Exists, err
}

// SegmentExists reports whether a segment exists now. Errors are *commands.Error.
func SegmentExists(ctx context.Context, w *Writer, tenantID, key string) (bool, error) {
	s, _, err := load[state.Segment](ctx, w, &storeRetry{}, events.SegmentStream(tenantID, key), tenantID)
	return s.Exists, err
}

// ReadShownProject returns a project's current state, and waits until what the node reads has it. Errors are
// *commands.Error, Unavailable if that takes too long.
func ReadShownProject(ctx context.Context, w *Writer, id string) (state.Project, error) {
	p, last, err := load[state.Project](ctx, w, &storeRetry{}, events.ProjectStream(id), "")
	if err == nil && !w.await(ctx, last.position, last.factPrefixes()) {
		err = &commands.Error{Kind: commands.Unavailable, Detail: "changes of the project are not shown yet"}
	}
	return p, err
}

// ReadInvitation returns the current state of an invitation to the platform, with an empty ID if it does not exist.
// Errors are *commands.Error.
func ReadInvitation(ctx context.Context, w *Writer, id string) (state.Invitation, error) {
	i, _, err := load[state.Invitation](ctx, w, &storeRetry{}, events.InvitationStream(id), "")
	return i, err
}
