package flags

import (
	"context"
	"net/http"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/queries"
)

type revertBody struct {
	Version *int64  `json:"version,omitempty" minimum:"1" doc:"A version of the flag" example:"3"`
	At      *string `json:"at,omitempty" format:"date-time" doc:"A time that is past by the store's clock. Send either version or at"`
}

// moment reads the moment to revert to. Its error is a problem.
func (b revertBody) moment(now time.Time) (m queries.Moment, err error) {
	wrong := map[string]string{}
	switch {
	case b.Version != nil && b.At != nil:
		wrong["at"] = "is not allowed with version: send one of them"
	case b.Version != nil && *b.Version < 1:
		wrong["version"] = "must be a whole number of at least 1"
	case b.Version != nil:
		m.Version = events.Revision(*b.Version)
	case b.At == nil:
		wrong["version"] = "is required, or at in its place"
	default:
		m.At, wrong = rest.ParseAt(*b.At, now)
	}
	if len(wrong) > 0 {
		return m, rest.Invalid(wrong)
	}
	return m, nil
}

func (a *API) addRevert() {
	revert := rest.Operation("POST", "/api/v1/flags/{flagKey}/revert", "revert-flag", "Flags",
		"Revert a flag to an earlier state")
	revert.Description = "Restores the flag's state at a version or a time: all fields, the variations, and in each " +
		"environment whether it is on, its rules and its fallthrough. Each unit gets the same variation as before. A " +
		"deleted or replaced flag is re-created with its old ids. In environments that were added since, the flag is off. " +
		"The history names the version in an entry `reverted`, after the changes. The answer is 409, and nothing changes, " +
		"if the flag's former project or an environment in which it was used was deleted. " + growFlagText
	revert.Errors = append(revert.Errors, http.StatusConflict)
	revert = rest.WithExamples(revert, map[string]any{"version": 1}, nil)
	rest.Register(a.Core, rest.ChangeFlags, revert, func(ctx context.Context, in *struct {
		FlagChange
		Body revertBody
	}) (*flagOutput, error) {
		m, err := in.Body.moment(a.Now())
		if err != nil {
			return nil, err
		}
		forget, err := a.EnterRevert(ctx)
		if err != nil {
			return nil, err
		}
		defer forget()
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
	slot.Leave()
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
