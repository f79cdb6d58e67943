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

	"flagledger/commands"
	"flagledger/commands/keep/inbox"
)

// Pushes are the jobs that push notifications to devices, and what they need.
type Pushes struct {
	Pusher commands.Pusher
	Inbox  *inbox.Inbox
	People interface {
		// ShutOut reports whether a person has been deactivated or erased: nothing is pushed to them.
		ShutOut(userID string) bool
	}
	Recipients interface {
		// Reaches reports whether a person is still one of those whom a notification may go to.
		Reaches(ctx context.Context, n commands.Notification) (bool, error)
	}
}

const (
	pushQueue   = "pushes"
	pushWorkers = 8 // on each node
	// pushAttempts never run out: a job ends once nothing waits for its device, and nothing waits for longer than twelve
	// hours.
	pushAttempts = math.MaxInt16
	maxPushRetry = 10 * time.Minute
	pushTimeout  = 10 * time.Second // of one push
	pushSlice    = 10 * time.Second // after which a device with more to be pushed waits for its next turn
)

// devicePush pushes all that waits for a device, in order. There is one such job for a device at most, so nothing
// overtakes what failed.
type devicePush struct {
	DeviceID string `json:"deviceId" river:"unique"`
}

// Kind implements river.JobArgs.
func (devicePush) Kind() string { return "push.device" }

// InsertOpts implements river.JobArgsWithInsertOpts. A job that ended does not stand in the way of the next one.
func (devicePush) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       pushQueue,
		MaxAttempts: pushAttempts,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: unfinished},
	}
}

func (devicePush) tenant() string { return "" }

// EnqueuePushesTx has what waits for some devices pushed, once tx is committed.
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
	return time.Now().Add(wait + rand.N(wait/10)) //nolint:gosec // so that not all come at once; it need not be secret
}

// Work implements river.Worker. A push that was taken is noted also while the node stops, so that it is not made again.
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
		case errors.Is(err, commands.ErrDeviceGone):
			err = w.Inbox.RemoveUnregistered(noted, device)
		case errors.Is(err, commands.ErrPushRefused):
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

// end completes a job in the transaction that finds whether something waits for its device: what is added later gets a
// job of its own.
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
