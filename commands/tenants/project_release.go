package tenants

import (
	"context"

	"flagledger/commands"
	"flagledger/commands/writer"
)

// DeletedProjects removes flags from projects that were deleted while the flags came into them: no command sees
// both streams.
type DeletedProjects struct {
	Writer *writer.Writer
	Flags  interface {
		// FlagsIn lists the keys of a tenant's flags in a project. It includes what the writer's Await has waited for.
		FlagsIn(tenantID, projectID string) []string
	}
}

// ReleaseFlags removes flags from a project that does not exist: the flag with the key, or all if it is empty. Errors
// are *commands.Error, Unavailable if this node does not know the deletion yet.
func (d *DeletedProjects) ReleaseFlags(ctx context.Context, by writer.By, projectID, key string) error {
	project, err := writer.ReadShownProject(ctx, d.Writer, projectID)
	if err != nil || project.Exists { // such as a demo project that was restored
		return err
	}
	keys := []string{key}
	if key == "" {
		keys = d.Flags.FlagsIn(project.TenantID, projectID)
	}
	for _, key := range keys {
		if _, _, err := writer.Do(
			ctx, d.Writer, by, commands.LeaveProject{FlagRef: commands.FlagRef{TenantID: project.TenantID, Key: key,
				ProjectID: projectID}},
		); err != nil {
			return err
		}
	}
	return nil
}
