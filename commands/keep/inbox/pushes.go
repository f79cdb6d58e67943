package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands/notify"
)

// pushedWithin is the maximum age of a notification that is pushed.
const pushedWithin = 12 * time.Hour

// maxPushedOfTenant limits a tenant's notifications that are pushed to a person within pushWindow.
const (
	maxPushedOfTenant = 50
	pushWindow        = 24 * time.Hour
)

// push queues a notification for all of the person's devices, unless its tenant recently sent them too many.
func (b *Inbox) push(ctx context.Context, tx pgx.Tx, n notify.Notification) error {
	rows, err := tx.Query(
		ctx,
		`insert into keep.pushes (device_id, notification_id) select id, $2 from keep.devices where user_id = $1
		and (select count(*) from keep.notifications where user_id = $1 and tenant_id = $3 and created_at > $4) <= $5
			returning device_id::text`,
		n.UserID,
		n.ID,
		n.TenantID,
		n.CreatedAt.Add(-pushWindow),
		maxPushedOfTenant,
	)
	if err != nil {
		return err
	}
	devices, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(devices) == 0 {
		return err
	}
	return b.pushes.EnqueuePushesTx(ctx, tx, devices)
}

// Push is a notification that is pending for a device.
type Push struct {
	notify.Notification
	DeviceToken string
	DeviceType  string
}

// NextPush returns the oldest pending notification of a device. It skips those that were read or are older than twelve
// hours. ok is false if there is none.
func (b *Inbox) NextPush(ctx context.Context, deviceID string) (p Push, ok bool, err error) {
	rows, err := b.db.Query(ctx, `select `+columns+`, device_token, device_type from keep.notifications n
		join (select notification_id, token as device_token, d.type as device_type from keep.pushes
			join keep.devices d on d.id = device_id where device_id = $1) p
			on p.notification_id = n.id
		where read_at is null and created_at > $2 order by created_at limit 1`, deviceID, b.now().Add(-pushedWithin))
	if err != nil {
		return Push{}, false, databaseError(err)
	}
	p, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Push])
	if errors.Is(err, pgx.ErrNoRows) {
		return Push{}, false, nil
	}
	return p, err == nil, databaseError(err)
}

// RemovePush removes a pending notification of a device, after a push or a permanent failure.
func (b *Inbox) RemovePush(ctx context.Context, deviceID, notificationID string) error {
	_, err := b.db.Exec(ctx, `delete from keep.pushes where device_id = $1 and notification_id = $2`, deviceID,
		notificationID)
	return databaseError(err)
}

// RemoveUnregistered removes a device whose token is not registered any more.
func (b *Inbox) RemoveUnregistered(ctx context.Context, deviceID string) error {
	_, err := b.db.Exec(ctx, `delete from keep.devices where id = $1`, deviceID)
	return databaseError(err)
}

// DropStalePushesTx removes a device's pending notifications that were read or are older than twelve hours, and
// reports whether others are pending. None is added until tx ends.
func (b *Inbox) DropStalePushesTx(ctx context.Context, tx pgx.Tx, deviceID string) (waiting bool, err error) {
	// Adding a push locks its device for key share.
	if _, err := tx.Exec(ctx, `select from keep.devices where id = $1 for update`, deviceID); err != nil {
		return false, databaseError(err)
	}
	_, err = tx.Exec(ctx, `delete from keep.pushes p using keep.notifications n
		where device_id = $1 and n.id = notification_id and (read_at is not null or created_at <= $2)`, deviceID, b.now().Add(-pushedWithin))
	if err == nil {
		err = tx.QueryRow(ctx, `select exists (select from keep.pushes where device_id = $1)`, deviceID).Scan(&waiting)
	}
	return waiting, databaseError(err)
}
