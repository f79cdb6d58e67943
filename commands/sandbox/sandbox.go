// Package sandbox manages tenants for trying the service, with demo data and an end.
package sandbox

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// Sandboxes manages tenants for trying the service: they have demo data, and end by themselves.
type Sandboxes struct {
	Writer    *writer.Writer
	Directory interface {
		// SaveDemoPeople saves names and addresses. It is idempotent.
		SaveDemoPeople(ctx context.Context, people []commands.DemoPerson) error
	}
	// Contents reads a tenant's contents from the read models.
	Contents interface {
		// FlagProjects returns the project id of each flag key.
		FlagProjects(ctx context.Context, tenantID string) (map[string]string, error)
		ProjectIDs(ctx context.Context, tenantID string) ([]string, error)
	}
	Meter interface {
		// Restart resets the evaluation counts of a tenant's flags, for a cleanup requested at a time.
		Restart(ctx context.Context, tenantID string, asked time.Time) error
		// RestartedSince reports whether Restart ran for a cleanup requested at a time or later.
		RestartedSince(ctx context.Context, tenantID string, asked time.Time) (bool, error)
	}
	// Jobs finishes the cleanups that this node does not.
	Jobs interface {
		// NoteCleanup schedules a cleanup of a sandbox in a minute, in place of an earlier one. It waits while a job
		// cleans the sandbox up. drop cancels it. After an Unavailable error, the cleanup may be scheduled.
		NoteCleanup(ctx context.Context, by writer.By, tenantID string, asked time.Time) (drop func(context.Context) error,
			err error)
	}
	People people.People
	Active time.Duration // how long a new sandbox accepts changes
	Now    func() time.Time
	Log    *slog.Logger
}

// NewEnd returns the end of a sandbox that is created now.
func (s *Sandboxes) NewEnd() time.Time { return s.Now().UTC().Add(s.Active).Truncate(time.Millisecond) }

// Fill adds the demo data that a sandbox has never had. Later changes and deletions stay. It is idempotent.
func (s *Sandboxes) Fill(ctx context.Context, by writer.By, tenantID string) error {
	by.Once = nil
	_, err := s.addDemo(ctx, by, tenantID, time.Time{})
	return err
}

const cleanupTimeout = 30 * time.Second

// Cleanup restores a sandbox's demo data and deletes other flags, projects and environments. Members, clients, the
// end, and whatever changes after the call stay.
//
// It returns Conflict for a tenant that is not a sandbox or is paid for, and Unavailable if it is incomplete and a job
// continues it.
func (s *Sandboxes) Cleanup(ctx context.Context, by writer.By, tenantID string) error {
	by.Once, by.ReasonRequired = nil, nil
	asked := s.Now().UTC().Truncate(time.Millisecond) // the precision of facts
	if _, err := s.checkCleanup(ctx, by, tenantID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	drop, err := s.Jobs.NoteCleanup(ctx, by, tenantID, asked)
	if err != nil {
		return err
	}
	err = s.reset(ctx, by, tenantID, asked)
	switch commands.KindOf(err) {
	case commands.NotFound, commands.Forbidden, commands.Conflict: // a job would be refused as well
	default:
		if err != nil {
			return &commands.Error{
				Kind: commands.Unavailable,
				Err:  err,
				Detail: "the cleanup is not complete: it goes on by itself within two minutes, and leaves alone what was made or " +
					"changed after it was asked for",
			}
		}
	}
	if failed := drop(context.WithoutCancel(ctx)); failed != nil {
		s.Log.WarnContext(ctx, "a job for a cleanup that has ended is not dropped, and will do nothing", "tenant", tenantID,
			"err", failed)
	}
	return err
}

// FinishCleanup continues a Cleanup that was requested at a time, unless it or a later one is complete. It returns
// Forbidden if the requester is not an admin any more.
func (s *Sandboxes) FinishCleanup(ctx context.Context, by writer.By, tenantID string, asked time.Time) error {
	if clean, err := s.Meter.RestartedSince(ctx, tenantID, asked); err != nil || clean {
		return err
	}
	tenant, err := s.checkCleanup(ctx, by, tenantID)
	if err != nil {
		return err
	}
	if !slices.Contains(commands.Admins(&tenant), by.Actor.ID) {
		return commands.Refuse(commands.Forbidden, "the person who asked for the cleanup is not an admin any more")
	}
	if err := people.CheckActive(s.People, by.Actor.ID); err != nil {
		return err
	}
	return s.reset(ctx, by, tenantID, asked)
}

// checkCleanup refuses a cleanup before anything is deleted.
func (s *Sandboxes) checkCleanup(ctx context.Context, by writer.By, tenantID string) (state.Tenant, error) {
	return writer.Check(ctx, s.Writer, by, commands.ResetDemoPeople{TenantRef: commands.TenantRef{TenantID: tenantID}})
}

// reset is one attempt at a Cleanup. A project stays if one of its flags does.
func (s *Sandboxes) reset(ctx context.Context, by writer.By, tenantID string, asked time.Time) error {
	flags, err := s.Contents.FlagProjects(ctx, tenantID)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	used := map[string]bool{} // ids of projects
	err = writer.ForEachConcurrently(ctx, slices.Collect(maps.Keys(flags)), func(key string) error {
		if slices.Contains(commands.DemoFlags(), key) {
			return nil
		}
		f, _, err := writer.Do(ctx, s.Writer, by, commands.CleanUpFlag{FlagRef: commands.FlagRef{TenantID: tenantID,
			Key: key}, Asked: asked})
		if f.Exists {
			mu.Lock()
			used[f.ProjectID] = true
			mu.Unlock()
		}
		return err
	})
	if err != nil {
		return err
	}
	demo, err := s.addDemo(ctx, by, tenantID, asked)
	if err != nil {
		return err
	}
	for _, id := range demo {
		used[id] = true
	}
	current, err := s.Contents.FlagProjects(ctx, tenantID)
	if err != nil {
		return err
	}
	for key, project := range current {
		if _, before := flags[key]; !before {
			used[project] = true
		}
	}
	ids, err := s.Contents.ProjectIDs(ctx, tenantID)
	if err != nil {
		return err
	}
	err = writer.ForEachConcurrently(ctx, ids, func(id string) error {
		if used[id] {
			return nil
		}
		_, _, err := writer.Do(ctx, s.Writer, by,
			commands.CleanUpProject{ProjectRef: commands.ProjectRef{TenantID: tenantID, ID: id}, Asked: asked})
		return err
	})
	if err != nil {
		return err
	}
	return s.Meter.Restart(ctx, tenantID, asked)
}

// addDemo restores the demo data, except for changes after asked. If asked is zero, it adds only what never existed.
// It returns the ids of the projects that contain demo data.
func (s *Sandboxes) addDemo(
	ctx context.Context, by writer.By, tenantID string, asked time.Time,
) (projects []string, err error) {
	reset := commands.DemoReset{OnlyMissing: asked.IsZero(), Asked: asked}
	people := commands.ResetDemoPeople{TenantRef: commands.TenantRef{TenantID: tenantID},
		Environments: commands.FirstEnvironments(), DemoReset: reset}
	if _, err := writer.Check(ctx, s.Writer, by, people); err != nil {
		return nil, err
	}
	// Save names and addresses first, so that every demo person has them.
	if err := s.Directory.SaveDemoPeople(ctx, commands.DemoPeople(tenantID)); err != nil {
		return nil, err
	}
	tenant, _, err := writer.Do(ctx, s.Writer, by, people)
	if err != nil {
		return nil, err
	}
	err = writer.ForEachConcurrently(ctx, commands.Demo().Projects, func(p commands.DemoProject) error {
		_, _, err := writer.Do(ctx, s.Writer, by, commands.ResetDemoProject{TenantID: tenantID, Name: p.Name,
			DemoReset: reset})
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	projects = commands.DemoProjects(tenantID)
	err = writer.ForEachConcurrently(ctx, commands.Demo().Flags, func(d commands.DemoFlag) error {
		f, _, err := writer.Do(ctx, s.Writer, by,
			commands.ResetDemoFlag{TenantID: tenantID, Key: d.Key, ID: commands.NewID(),
				Environments: tenant.Environments, DemoReset: reset})
		mu.Lock()
		defer mu.Unlock()
		if f.Exists {
			projects = append(projects, f.ProjectID) // a changed flag may be in another project
		}
		return err
	})
	return projects, err
}
