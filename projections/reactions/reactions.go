// Package reactions turns facts into jobs. Unlike a read model it begins at the head of the log and is never rebuilt,
// so that no fact acts twice.
package reactions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/retry"
)

// Reactions follows the log on one of the nodes, the one that holds a lock in the database.
type Reactions struct {
	*Checkpoint
	jobs          *jobs.Client
	projectExists func(ctx context.Context, projectID string) (bool, error)
	skipped       atomic.Int64
}

// New returns the reactions after a checkpoint. projectExists reports whether a project exists now.
func New(
	c *Checkpoint, jobs *jobs.Client, projectExists func(ctx context.Context, projectID string) (bool, error),
) *Reactions {
	return &Reactions{Checkpoint: c, jobs: jobs, projectExists: projectExists}
}

// Skipped counts the facts that this node could not handle and skipped.
func (r *Reactions) Skipped() int64 { return r.skipped.Load() }

const (
	lockInterval = 500 * time.Millisecond // between attempts to take over from another node
	idleInterval = time.Second            // between checkpoints if facts cause no jobs
)

var (
	errElsewhere = &backoff.RetryAfterError{Duration: lockInterval} // another node follows the log
	errMoved     = errors.New("the checkpoint was moved by another node")
)

// jobsByStream returns the jobs of a fact by kind of stream; nil for a kind without jobs.
var jobsByStream = events.NewByStream(fromFlag, fromProject, fromTenant, nil, fromInvitation, nil)

// react returns the jobs that a fact causes. A fact that cannot be decoded is an error, because it might cause some.
func react(e events.Recorded) ([]jobs.Job, error) {
	from, _ := jobsByStream.Lookup(e.Stream)
	if from == nil {
		return nil, nil
	}
	return from(e), e.Err
}

func fromFlag(e events.Recorded) []jobs.Job {
	project := ""
	switch fact := e.Fact.(type) {
	case events.FlagCreated:
		project = fact.ProjectID
	case events.FlagUpdated:
		if fact.ProjectID != nil {
			project = fact.ProjectID.To
		}
	}
	if project == "" {
		return nil
	}
	_, key := events.ParseFlagStream(e.Stream)
	return []jobs.Job{jobs.ProjectRelease{EventID: e.ID.String(), ProjectID: project, FlagKey: key}}
}

func fromProject(e events.Recorded) []jobs.Job {
	if _, ok := e.Fact.(events.ProjectDeleted); ok {
		return []jobs.Job{
			jobs.ProjectRelease{EventID: e.ID.String(), ProjectID: strings.TrimPrefix(e.Stream, events.ProjectStream(""))},
		}
	}
	return nil
}

func fromTenant(e events.Recorded) []jobs.Job {
	tenantID := strings.TrimPrefix(e.Stream, events.TenantStream(""))
	fact, _ := e.Fact.(events.TenantFact)
	switch fact := fact.(type) {
	case events.TenantDeleted:
		return []jobs.Job{
			jobs.FollowPayments{Cause: e.ID.String(), TenantID: tenantID}, // cancels its subscription
			jobs.PurgeTenant{EventID: e.ID.String(), TenantID: tenantID},
		}
	case events.MemberInvited:
		return []jobs.Job{jobs.MemberInvitation{EventID: e.ID.String(), TenantID: tenantID, MemberID: fact.ID}}
	case events.MemberAdded:
		return unlessOwnAction(e, fact.UserID,
			jobs.Notice{EventID: e.ID.String(), About: jobs.MemberAdded, TenantID: tenantID, UserID: fact.UserID})
	case events.MemberJoined:
		return []jobs.Job{
			jobs.Notice{EventID: e.ID.String(), About: jobs.MemberAdded, TenantID: tenantID, UserID: fact.UserID},
			jobs.Notice{EventID: e.ID.String(), About: jobs.InvitationAccepted, TenantID: tenantID, UserID: fact.UserID},
		}
	case events.MemberRoleChanged:
		return unlessOwnAction(e, fact.UserID,
			jobs.Notice{EventID: e.ID.String(), About: jobs.RoleChanged, TenantID: tenantID, UserID: fact.UserID})
	case events.SubscriptionChanged:
		from, to := fact.From.Status, fact.To.Status
		// Stripe may skip past_due.
		if from != events.PastDue && (to == events.PastDue || to == events.Unpaid && from.Manageable()) {
			return []jobs.Job{jobs.Notice{EventID: e.ID.String(), About: jobs.PaymentFailed, TenantID: tenantID}}
		}
	case events.TenantCreated:
		if fact.Sandbox {
			return []jobs.Job{jobs.SeedSandbox{EventID: e.ID.String(), TenantID: tenantID}}
		}
	case events.TenantUpdated, events.FlagRulesChanged, events.EnvironmentAdded, events.EnvironmentDeleted,
		events.EnvironmentsArranged, events.MemberRemoved,
		events.OAuthClientCreated, events.OAuthSecretRotated, events.OAuthClientDeleted,
		events.EvaluationKeyAdded, events.EvaluationKeyChanged, events.EvaluationKeyRotated, events.EvaluationKeyRemoved:
	}
	return nil
}

// unlessOwnAction returns the job of a notice to a person, or none for an action of their own or of the service.
func unlessOwnAction(e events.Recorded, userID string, notice jobs.Notice) []jobs.Job {
	if e.Actor.ID == userID || e.Actor.Kind == events.SystemActor {
		return nil
	}
	return []jobs.Job{notice}
}

func fromInvitation(e events.Recorded) []jobs.Job {
	invitationID := strings.TrimPrefix(e.Stream, events.InvitationStream(""))
	fact, _ := e.Fact.(events.InvitationFact)
	switch fact.(type) {
	case events.InvitationCreated, events.InvitationResent:
		return []jobs.Job{jobs.PlatformInvitation{EventID: e.ID.String(), InvitationID: invitationID}}
	case events.InvitationAccepted:
		return []jobs.Job{
			jobs.Notice{EventID: e.ID.String(), About: jobs.PlatformInvitationAccepted, InvitationID: invitationID},
		}
	case events.InvitationRevoked:
	}
	return nil
}

// Run follows the log until ctx ends, unless another node does.
func (r *Reactions) Run(ctx context.Context) {
	follow := func(progressed func()) error { return r.follow(ctx, progressed) }
	retry.Forever(ctx, follow, func(err error, wait time.Duration) {
		if !errors.Is(err, errElsewhere) {
			r.log.Error("reactions stopped; retrying", "retry_in", wait, "err", err)
		}
	})
}

// follow follows the log until an error, or returns errElsewhere. The lock belongs to the connection, so it is freed
// when a node dies.
func (r *Reactions) follow(ctx context.Context, progressed func()) error {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var locked bool
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock(hashtext('flagledger reactions'))`).
		Scan(&locked); err != nil {
		return err
	}
	if !locked {
		return errElsewhere
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Conn().Close(ctx)
	}()
	c, err := r.resume(ctx)
	if err != nil {
		return err
	}
	f := &follower{r, conn.Conn(), c, c}
	pages, stop := r.subscribe(ctx, c.Position)
	defer stop()
	idle := time.NewTicker(idleInterval)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-pages:
			if err := p.err; err != nil {
				return err
			}
			if err := f.take(ctx, p.Page); err != nil {
				return err
			}
			progressed()
		case <-idle.C:
			if f.seen != f.noted {
				if err := f.commit(ctx, nil, f.seen); err != nil {
					return err
				}
			}
		}
	}
}

type page struct {
	events.Page
	err error
}

// subscribe reads pages in the background until stop is called or an error occurs.
func (r *Reactions) subscribe(ctx context.Context, after events.Position) (pages <-chan page, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan page)
	done := make(chan struct{})
	go func() {
		defer close(done)
		send := func(p page) bool {
			select {
			case ch <- p:
				return p.err == nil
			case <-ctx.Done():
				return false
			}
		}
		for p, err := range r.store.Subscribe(ctx, after) {
			if !send(page{p, err}) {
				return
			}
		}
		send(page{err: errors.New("the subscription ended")})
	}()
	return ch, func() {
		cancel()
		<-done
	}
}

// follower follows the log on this node.
type follower struct {
	*Reactions
	conn  *pgx.Conn
	noted events.LogPosition
	seen  events.LogPosition // jobs of all facts up to here exist
}

// take inserts the jobs of a page. If the database refuses them, it tries each event by itself and skips the refused
// ones.
func (f *follower) take(ctx context.Context, p events.Page) error {
	next := f.seen.After(p.Events, p.Next)
	var list []jobs.Job
	for _, e := range p.Events {
		follows, err := react(e)
		if err != nil {
			f.skip(e, err)
		}
		list = append(list, follows...)
	}
	list, err := f.needed(ctx, list)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		f.seen = next
		return nil
	}
	err = f.commit(ctx, list, next)
	if !refused(err) {
		return err
	}
	for _, e := range p.Events {
		list, err := react(e)
		if err != nil {
			continue
		}
		if list, err = f.needed(ctx, list); err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		err = f.commit(ctx, list, f.noted.After([]events.Recorded{e}, e.Position))
		if refused(err) {
			f.skip(e, err)
		} else if err != nil {
			return err
		}
	}
	f.seen = next
	return nil
}

// needed removes the jobs of flags that came into an existing project, which is almost all of them.
func (f *follower) needed(ctx context.Context, list []jobs.Job) ([]jobs.Job, error) {
	exists := map[string]bool{} // by project id
	for _, job := range list {
		release, ok := job.(jobs.ProjectRelease)
		if _, known := exists[release.ProjectID]; !ok || known || release.FlagKey == "" {
			continue
		}
		found, err := f.projectExists(ctx, release.ProjectID)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // the job checks it again
			f.log.Warn("cannot check whether a project exists", "project", release.ProjectID, "err", err)
		}
		exists[release.ProjectID] = found && err == nil
	}
	return slices.DeleteFunc(list, func(job jobs.Job) bool {
		release, ok := job.(jobs.ProjectRelease)
		return ok && release.FlagKey != "" && exists[release.ProjectID]
	}), nil
}

func (f *follower) skip(e events.Recorded, err error) {
	f.skipped.Add(1)
	f.log.Error("a fact is passed over: no jobs are made from it", "stream", e.Stream, "revision", e.Revision,
		"event", e.Name, "err", err)
}

// commit inserts jobs and moves the checkpoint in one transaction.
func (f *follower) commit(ctx context.Context, list []jobs.Job, next events.LogPosition) error {
	err := pgx.BeginFunc(ctx, f.conn, func(tx pgx.Tx) error {
		moved, err := tx.Exec(
			ctx,
			`update keep.reactions set commit = $1, prepare = $2, log = $3, last_event = $4, updated_at = now()
			where engine = $5 and commit = $6 and prepare = $7`,
			next.Position.Commit,
			next.Position.Prepare,
			next.LogID,
			next.Last,
			next.Engine,
			f.noted.Position.Commit,
			f.noted.Position.Prepare,
		)
		if err != nil {
			return err
		}
		if moved.RowsAffected() != 1 {
			return errMoved
		}
		return f.jobs.Add(ctx, tx, list...)
	})
	if err != nil {
		return fmt.Errorf("reactions: %w", err)
	}
	f.noted, f.seen = next, next
	return nil
}

// refused reports whether the inserted data caused an error, so that a retry does not help.
func refused(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code[:2] == "22" || pg.Code[:2] == "23" || pg.Code[:2] == "54") // data, integrity constraint, a limit
}
