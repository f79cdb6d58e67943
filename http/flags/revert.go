package flags

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"flagledger/commands"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

func (a *API) addRevert() {
	revert := rest.Operation("POST", "/api/v1/flags/{flagKey}/revert", "revert-flag", "Flags",
		"Revert a flag to an earlier state")
	revert.Description = "Restores the flag's state at a version or a time: all fields, the variations, and in each " +
		"environment whether it is on, its rules, its fallthrough and its prerequisites. Each unit gets the same " +
		"variation as before. A deleted or replaced flag is re-created with its old ids. In environments that were added " +
		"since, the flag is off. The history names the version in an entry `reverted`, after the changes. The " +
		"answer is 409, and nothing changes, " +
		"if the flag's former project, an environment in which it was used or a flag that it required was deleted, or if " +
		"other flags require what the revert would remove. " + growFlagText
	revert.Errors = append(revert.Errors, http.StatusConflict)
	revert = rest.WithExamples(revert, map[string]any{"version": 1}, nil)
	rest.Register(a.Core, rest.ChangeFlags, revert, func(ctx context.Context, in *struct {
		FlagChange
		Body rest.RevertBody
	}) (*flagOutput, error) {
		m, err := in.Body.Moment(a.Now())
		if err != nil {
			return nil, err
		}
		leaveMemory, err := a.EnterRevert(ctx)
		if err != nil {
			return nil, err
		}
		defer leaveMemory()
		cmd := commands.RevertFlag{FlagRef: in.ref(ctx), At: m.At.UTC(),
			Environments: rest.PrincipalOf(ctx).Tenant.Environments()}
		if err := a.readRevertTarget(ctx, &cmd, m); err != nil {
			return nil, err
		}
		release, err := a.countReverted(ctx, &cmd)
		if err != nil {
			return nil, err
		}
		defer release()
		leave, err := a.EnterChanges(ctx) // a small body may restore a large flag
		if err != nil {
			return nil, err
		}
		defer leave()
		return a.writeFlag(ctx, cmd)
	})
	a.addRevertMany()
}

// readRevertTarget reads the state that a command reverts to, and the environments at that time unless the command has
// them.
func (a *API) readRevertTarget(ctx context.Context, cmd *commands.RevertFlag, m queries.Moment) error {
	if cmd.EnvironmentsAt == nil {
		if err := a.Queries.WaitUntilCurrent(ctx, m.At, "tenant."); err != nil {
			return err
		}
	}
	slot, err := a.EnterPast(ctx)
	if err != nil {
		return err
	}
	defer slot.Leave()
	if cmd.To, err = a.Queries.FlagAt(ctx, cmd.TenantID, cmd.Key, m); err != nil {
		return err
	}
	if cmd.EnvironmentsAt == nil {
		if cmd.EnvironmentsAt, err = a.Queries.EnvironmentsAt(ctx, cmd.TenantID, m.Time(cmd.To)); err != nil {
			return err
		}
	}
	tenant := rest.PrincipalOf(ctx).Tenant
	cmd.Required, cmd.Dependents = requiredAt(tenant, &cmd.To), dependents(tenant, cmd.Key)
	slot.Leave()
	var used []string
	for _, rules := range cmd.To.Rules {
		used = append(used, state.SegmentsOf(rules)...)
	}
	missing := a.UnusableSegmentKeys(ctx, tenant, "", used)
	cmd.SegmentsMissing = slices.Sorted(maps.Keys(missing))
	if cmd.To.ProjectID != "" {
		known, err := a.hasProject(ctx, cmd.To.ProjectID)
		cmd.ProjectMissing = !known
		return err
	}
	return nil
}

// countReverted reserves a flag of the tenant's limit for a command that may add one: see countFlags.
func (a *API) countReverted(ctx context.Context, cmd *commands.RevertFlag) (release func(), err error) {
	if _, exists := rest.PrincipalOf(ctx).Tenant.Flag(cmd.Key); exists {
		return func() {}, nil
	}
	cmd.FlagCount, release, err = a.countFlags(ctx)
	return release, err
}
