package commands

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Sandboxes are the tenants that people try the service in: they have demo data, and end by themselves.
type Sandboxes struct {
	Writer    *Writer
	Directory interface {
		// SaveDemoPeople notes names and addresses. It may be repeated.
		SaveDemoPeople(ctx context.Context, people []DemoPerson) error
	}
	// Contents lists what a tenant has, as the read models show it.
	Contents interface {
		FlagKeys(ctx context.Context, tenantID string) ([]string, error)
		ProjectIDs(ctx context.Context, tenantID string) ([]string, error)
	}
	Meter interface {
		// Restart has evaluations of a tenant's flags counted from now on.
		Restart(ctx context.Context, tenantID string) error
		// RestartedSince reports whether that was done at a time or later.
		RestartedSince(ctx context.Context, tenantID string, at time.Time) (bool, error)
	}
	// Jobs finish what this node does not.
	Jobs interface {
		// Cleanup notes that a sandbox is to be cleaned up in a minute, in place of what was noted for it before. While a job cleans it up, it waits. drop
		// takes back all that is noted for it.
		Cleanup(ctx context.Context, by By, tenantID string) (drop func(context.Context) error, err error)
	}
	Active time.Duration // how long a new sandbox takes changes
	Now    func() time.Time
	Log    *slog.Logger
}

// NewEnd is when a sandbox that is created now ends.
func (s *Sandboxes) NewEnd() time.Time { return s.Now().UTC().Add(s.Active).Truncate(time.Millisecond) }

// Fill adds the demo data that a sandbox has never had. What was changed or deleted since stays so, and the call may be repeated.
func (s *Sandboxes) Fill(ctx context.Context, by By, tenantID string) error {
	by.Once = nil
	_, err := s.addDemo(ctx, by, tenantID, true)
	return err
}

const cleanupTimeout = 30 * time.Second

// Cleanup is Reset by somebody who waits for it; where the node dies or Reset takes too long, a job finishes it a minute later. Its errors are *Error,
// Conflict for a tenant that is no sandbox or is paid for.
func (s *Sandboxes) Cleanup(ctx context.Context, by By, tenantID string) error {
	by.Once = nil
	if err := s.checkCleanup(ctx, by, tenantID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	// No job cleans it up while this does: what is done after this answers would be undone.
	drop, err := s.Jobs.Cleanup(ctx, by, tenantID)
	if err != nil {
		return err
	}
	if err := s.Reset(ctx, by, tenantID); err != nil {
		if ctx.Err() != nil {
			return &Error{Kind: Unavailable, Detail: "the cleanup takes longer, and goes on by itself in a minute", Err: err}
		}
		return err
	}
	if err := drop(context.WithoutCancel(ctx)); err != nil {
		s.Log.WarnContext(ctx, "a job for a sandbox that is clean is not dropped, and will do nothing", "tenant", tenantID, "err", err)
	}
	return nil
}

// FinishCleanup is Reset for somebody who asked for it at a time, unless one has been completed since: what was done after it stays.
func (s *Sandboxes) FinishCleanup(ctx context.Context, by By, tenantID string, asked time.Time) error {
	if clean, err := s.Meter.RestartedSince(ctx, tenantID, asked); err != nil || clean {
		return err
	}
	if err := s.checkCleanup(ctx, by, tenantID); err != nil {
		return err
	}
	return s.Reset(ctx, by, tenantID)
}

// checkCleanup refuses a cleanup before anything is deleted.
func (s *Sandboxes) checkCleanup(ctx context.Context, by By, tenantID string) error {
	_, err := Check(ctx, s.Writer, by, ResetDemoPeople{TenantRef: TenantRef{tenantID}})
	return err
}

// Reset brings a sandbox back to its demo data, whatever was done before: other flags, projects and environments are deleted, while members, clients
// and the end of the sandbox stay. It may be repeated.
func (s *Sandboxes) Reset(ctx context.Context, by By, tenantID string) error {
	keys, err := s.Contents.FlagKeys(ctx, tenantID)
	if err != nil {
		return err
	}
	err = eachAtOnce(keys, func(key string) error {
		if slices.Contains(DemoFlags(), key) {
			return nil
		}
		_, _, err := Do(ctx, s.Writer, by, DeleteFlag{FlagRef{TenantID: tenantID, Key: key}})
		return unlessGone(err)
	})
	if err != nil {
		return err
	}
	projects, err := s.addDemo(ctx, by, tenantID, false)
	if err != nil {
		return err
	}
	ids, err := s.Contents.ProjectIDs(ctx, tenantID)
	if err != nil {
		return err
	}
	err = eachAtOnce(ids, func(id string) error {
		if slices.Contains(projects, id) {
			return nil
		}
		_, _, err := Do(ctx, s.Writer, by, DeleteProject{ProjectRef: ProjectRef{TenantID: tenantID, ID: id}})
		return unlessGone(err)
	})
	if err != nil {
		return err
	}
	return s.Meter.Restart(ctx, tenantID)
}

// addDemo makes the demo data, or with onlyNew what of it has never been there, and returns the ids of the demo projects. The names and addresses of
// demo people come first, so that none is without.
func (s *Sandboxes) addDemo(ctx context.Context, by By, tenantID string, onlyNew bool) (projects []string, err error) {
	people := ResetDemoPeople{TenantRef: TenantRef{tenantID}, Environments: FirstEnvironments(), New: onlyNew}
	if _, err := Check(ctx, s.Writer, by, people); err != nil {
		return nil, err
	}
	if err := s.Directory.SaveDemoPeople(ctx, DemoPeople(tenantID)); err != nil {
		return nil, err
	}
	tenant, _, err := Do(ctx, s.Writer, by, people)
	if err != nil {
		return nil, err
	}
	err = eachAtOnce(demo().Projects, func(p demoProject) error {
		_, _, err := Do(ctx, s.Writer, by, ResetDemoProject{TenantID: tenantID, Name: p.Name, New: onlyNew})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = eachAtOnce(demo().Flags, func(f demoFlag) error {
		_, _, err := Do(ctx, s.Writer, by, ResetDemoFlag{TenantID: tenantID, Key: f.Key, ID: NewID(), Environments: tenant.Environments, New: onlyNew})
		return err
	})
	return demoProjects(tenantID), err
}

// unlessGone is no error for something that is not there any more.
func unlessGone(err error) error {
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}

// eachAtOnce calls do for each of a list, as many at once as a tenant may have commands under way. After an error no further one is begun.
func eachAtOnce[T any](list []T, do func(T) error) (err error) {
	var running sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, tenantCommands)
	for _, each := range list {
		slots <- struct{}{}
		mu.Lock()
		failed := err != nil
		mu.Unlock()
		if failed {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			if failure := do(each); failure != nil {
				mu.Lock()
				defer mu.Unlock()
				err = cmp.Or(err, failure)
			}
		})
	}
	running.Wait()
	return err
}
