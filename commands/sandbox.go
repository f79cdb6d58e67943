package commands

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"flagledger/events/state"
)

// Sandboxes manages tenants for trying the service: they have demo data, and end by themselves.
type Sandboxes struct {
	Writer    *Writer
	Directory interface {
		// SaveDemoPeople saves names and addresses. It is idempotent.
		SaveDemoPeople(ctx context.Context, people []DemoPerson) error
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
		NoteCleanup(ctx context.Context, by By, tenantID string, asked time.Time) (drop func(context.Context) error,
			err error)
	}
	People People
	Active time.Duration // how long a new sandbox accepts changes
	Now    func() time.Time
	Log    *slog.Logger
}

// NewEnd returns the end of a sandbox that is created now.
func (s *Sandboxes) NewEnd() time.Time { return s.Now().UTC().Add(s.Active).Truncate(time.Millisecond) }

// Fill adds the demo data that a sandbox has never had. Later changes and deletions stay. It is idempotent.
func (s *Sandboxes) Fill(ctx context.Context, by By, tenantID string) error {
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
func (s *Sandboxes) Cleanup(ctx context.Context, by By, tenantID string) error {
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
	switch KindOf(err) {
	case NotFound, Forbidden, Conflict: // a job would be refused as well
	default:
		if err != nil {
			return &Error{
				Kind: Unavailable,
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
func (s *Sandboxes) FinishCleanup(ctx context.Context, by By, tenantID string, asked time.Time) error {
	if clean, err := s.Meter.RestartedSince(ctx, tenantID, asked); err != nil || clean {
		return err
	}
	tenant, err := s.checkCleanup(ctx, by, tenantID)
	if err != nil {
		return err
	}
	if !slices.Contains(Admins(&tenant), by.Actor.ID) {
		return refuse(Forbidden, "the person who asked for the cleanup is not an admin any more")
	}
	if err := CheckActive(s.People, by.Actor.ID); err != nil {
		return err
	}
	return s.reset(ctx, by, tenantID, asked)
}

// checkCleanup refuses a cleanup before anything is deleted.
func (s *Sandboxes) checkCleanup(ctx context.Context, by By, tenantID string) (state.Tenant, error) {
	return Check(ctx, s.Writer, by, ResetDemoPeople{TenantRef: TenantRef{tenantID}})
}

// reset is one attempt at a Cleanup. A project stays if one of its flags does.
func (s *Sandboxes) reset(ctx context.Context, by By, tenantID string, asked time.Time) error {
	flags, err := s.Contents.FlagProjects(ctx, tenantID)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	used := map[string]bool{} // ids of projects
	err = forEachConcurrently(ctx, slices.Collect(maps.Keys(flags)), func(key string) error {
		if slices.Contains(DemoFlags(), key) {
			return nil
		}
		f, _, err := Do(ctx, s.Writer, by, CleanUpFlag{FlagRef{TenantID: tenantID, Key: key}, asked})
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
	err = forEachConcurrently(ctx, ids, func(id string) error {
		if used[id] {
			return nil
		}
		_, _, err := Do(ctx, s.Writer, by, CleanUpProject{ProjectRef{TenantID: tenantID, ID: id}, asked})
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
	ctx context.Context, by By, tenantID string, asked time.Time,
) (projects []string, err error) {
	reset := DemoReset{OnlyMissing: asked.IsZero(), Asked: asked}
	people := ResetDemoPeople{TenantRef: TenantRef{tenantID}, Environments: FirstEnvironments(), DemoReset: reset}
	if _, err := Check(ctx, s.Writer, by, people); err != nil {
		return nil, err
	}
	// Save names and addresses first, so that every demo person has them.
	if err := s.Directory.SaveDemoPeople(ctx, DemoPeople(tenantID)); err != nil {
		return nil, err
	}
	tenant, _, err := Do(ctx, s.Writer, by, people)
	if err != nil {
		return nil, err
	}
	err = forEachConcurrently(ctx, demo().Projects, func(p demoProject) error {
		_, _, err := Do(ctx, s.Writer, by, ResetDemoProject{TenantID: tenantID, Name: p.Name, DemoReset: reset})
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	projects = demoProjects(tenantID)
	err = forEachConcurrently(ctx, demo().Flags, func(d demoFlag) error {
		f, _, err := Do(ctx, s.Writer, by,
			ResetDemoFlag{TenantID: tenantID, Key: d.Key, ID: NewID(), Environments: tenant.Environments, DemoReset: reset})
		mu.Lock()
		defer mu.Unlock()
		if f.Exists {
			projects = append(projects, f.ProjectID) // a changed flag may be in another project
		}
		return err
	})
	return projects, err
}
