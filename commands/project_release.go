package commands

import (
	"context"

	"flagledger/events"
)

// DeletedProjects takes flags out of projects that were deleted in the moment in which the flags were created: no
// command sees both streams.
type DeletedProjects struct {
	Writer *Writer
	Flags  interface {
		// FlagsIn lists the keys of a tenant's flags in a project. It knows all that the Await of the writer has waited for.
		FlagsIn(tenantID, projectID string) []string
	}
}

// ReleaseFlags takes flags out of a project, unless it exists: the one with the key, or all where that is empty. Errors
// are *Error, Unavailable where this node does not show the deletion yet.
func (d *DeletedProjects) ReleaseFlags(ctx context.Context, by By, projectID, key string) error {
	project, last, err := load[Project](ctx, d.Writer, &storeRetry{}, events.ProjectStream(projectID), "")
	if err != nil || project.Exists { // as a demo project that is there again
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

// LeaveProject takes a flag out of its project. It does nothing where the flag is not in that any more.
type LeaveProject struct{ FlagRef }

func (c LeaveProject) decide(f Flag) ([]events.Fact, error) {
	if !f.Exists || f.ProjectID != c.ProjectID {
		return nil, nil
	}
	return []events.Fact{events.FlagUpdated{ProjectID: &events.Change[string]{From: f.ProjectID}}}, nil
}
