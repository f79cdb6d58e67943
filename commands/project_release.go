package commands

import (
	"context"

	"flagledger/events"
	"flagledger/events/state"
)

// DeletedProjects removes flags from projects that were deleted while the flags were created: no command sees both
// streams.
type DeletedProjects struct {
	Writer *Writer
	Flags  interface {
		// FlagsIn lists the keys of a tenant's flags in a project. It includes what the writer's Await has waited for.
		FlagsIn(tenantID, projectID string) []string
	}
}

// ReleaseFlags removes flags from a project that does not exist: the flag with the key, or all if it is empty. Errors
// are *Error, Unavailable if this node does not know the deletion yet.
func (d *DeletedProjects) ReleaseFlags(ctx context.Context, by By, projectID, key string) error {
	project, last, err := load[state.Project](ctx, d.Writer, &storeRetry{}, events.ProjectStream(projectID), "")
	if err != nil || project.Exists { // such as a demo project that was restored
		return err
	}
	keys := []string{key}
	if key == "" {
		if !d.Writer.await(ctx, last.position, last.factPrefixes()) {
			return &Error{Kind: Unavailable, Detail: "the deletion of the project is not shown yet"}
		}
		keys = d.Flags.FlagsIn(project.TenantID, projectID)
	}
	for _, key := range keys {
		if _, _, err := Do(
			ctx, d.Writer, by, LeaveProject{FlagRef{TenantID: project.TenantID, Key: key, ProjectID: projectID}},
		); err != nil {
			return err
		}
	}
	return nil
}

// LeaveProject removes a flag from its project. It does nothing if the flag is no longer in it.
type LeaveProject struct{ FlagRef }

func (c LeaveProject) decide(f state.Flag) ([]events.Fact, error) {
	if !f.Exists || f.ProjectID != c.ProjectID {
		return nil, nil
	}
	return []events.Fact{events.FlagUpdated{ProjectID: &events.Change[string]{From: f.ProjectID}}}, nil
}
