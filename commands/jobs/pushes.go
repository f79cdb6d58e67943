package jobs

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"flagledger/commands/keep/inbox"
	"flagledger/commands/notify"
)

// Pushes holds the dependencies of the jobs that push notifications.
type Pushes struct {
	Pusher notify.Pusher
	Inbox  *inbox.Inbox
	People interface {
		// ShutOut reports whether a person was deactivated or erased: they get no pushes.
		ShutOut(userID string) bool
	}
	Recipients interface {
		// Reaches reports whether a person is still a recipient of a notification.
		Reaches(ctx context.Context, n notify.Notification) (bool, error)
	}
}

const (
	pushQueue   = "pushes"
	pushWorkers = 8 // on each node
	// pushAttempts never run out: a job ends when its device has no pending notification, at the latest after twelve
	// hours.
	pushAttempts = math.MaxInt16
	maxPushRetry = 10 * time.Minute
	pushTimeout  = 10 * time.Second // of one push
	pushSlice    = 10 * time.Second // after which a device with more notifications waits for its next turn
)

// devicePush pushes a device's pending notifications in order. A device has at most one such job, so that nothing
// overtakes a failed push.
type devicePush struct {
	DeviceID string `json:"deviceId" river:"unique"`
}

// Kind implements river.JobArgs.
func (devicePush) Kind() string { return "push.device" }

// InsertOpts implements river.JobArgsWithInsertOpts. An ended job does not block the next one.
func (devicePush) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       pushQueue,
		MaxAttempts: pushAttempts,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: unfinished},
	}
}

func (devicePush) tenant() string { return "" }

// EnqueuePushesTx pushes the pending notifications of some devices once tx is committed.
func (c *Client) EnqueuePushesTx(ctx context.Context, tx pgx.Tx, deviceIDs []string) error {
	list := make([]Job, len(deviceIDs))
	for i, id := range deviceIDs {
		list[i] = devicePush{id}
	}
	return c.Add(ctx, tx, list...)
}

// pushWorker works pushes.
type pushWorker struct {
	river.WorkerDefaults[devicePush]
	*Pushes
	client *Client
	log    *slog.Logger
}

// NextRetry implements river.Worker.
func (pushWorker) NextRetry(job *river.Job[devicePush]) time.Time {
	wait := maxPushRetry
	if n := job.Attempt; n < 5 {
		wait = time.Duration(n*n*n*n) * time.Second
	}
	return time.Now().Add(wait + rand.N(wait/10)) //nolint:gosec // randomized, so that not all come at once
}

// Work implements river.Worker. It records a delivered push even while the node stops, so that it is not repeated.
func (w pushWorker) Work(ctx context.Context, job *river.Job[devicePush]) error {
	device := job.Args.DeviceID
	for began := time.Now(); time.Since(began) < pushSlice; {
		next, ok, err := w.Inbox.NextPush(ctx, device)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		err = w.push(ctx, next)
		noted, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		switch {
		case errors.Is(err, notify.ErrDeviceGone):
			err = w.Inbox.RemoveUnregistered(noted, device)
		case errors.Is(err, notify.ErrPushRefused):
			w.log.WarnContext(ctx, "a notification cannot be pushed to a device", "notification", next.ID, "device", device,
				"err", err)
			err = w.Inbox.RemovePush(noted, device, next.ID)
		case err == nil:
			err = w.Inbox.RemovePush(noted, device, next.ID)
		}
		cancel()
		if err != nil {
			return err
		}
	}
	return w.end(ctx, job)
}

func (w pushWorker) push(ctx context.Context, p inbox.Push) error {
	if w.People.ShutOut(p.UserID) {
		return nil
	}
	if reached, err := w.Recipients.Reaches(ctx, p.Notification); err != nil || !reached {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	return w.Pusher.Push(ctx, p.Notification, []string{p.DeviceToken})[0]
}

// end completes a job in the transaction that checks for pending notifications: what is added later gets its own job.
func (w pushWorker) end(ctx context.Context, job *river.Job[devicePush]) error {
	return pgx.BeginFunc(ctx, w.client.pool, func(tx pgx.Tx) error {
		waiting, err := w.Inbox.DropStalePushesTx(ctx, tx, job.Args.DeviceID)
		if err != nil {
			return err
		}
		if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil || !waiting {
			return err
		}
		return w.client.Add(ctx, tx, job.Args)
	})
}
