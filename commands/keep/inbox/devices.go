package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/commands"
)

// Device is a device that receives a person's notifications.
type Device struct {
	Token      string
	Name       string
	Type       string
	CreatedAt  time.Time
	LastSeenAt time.Time // when its token was last registered
}

const deviceColumns = `token, name, type, created_at, last_seen_at`

// Register adds or updates a person's device, and reports whether it is new to them. Above 20 devices, it deletes the
// one that was seen longest ago.
//
// It takes over another person's device without its pending notifications.
func (b *Inbox) Register(ctx context.Context, userID string, d Device) (registered Device, isNew bool, err error) {
	err = pgx.BeginFunc(ctx, b.db, func(tx pgx.Tx) error {
		if err := lockPerson(ctx, tx, userID); err != nil {
			return err
		}
		row, err := register(ctx, tx, userID, d, b.now())
		for errors.Is(err, pgx.ErrNoRows) { // another person registered the token meanwhile
			row, err = register(ctx, tx, userID, d, b.now())
		}
		if err != nil {
			return err
		}
		registered, isNew = row.Device, row.IsNew
		_, err = tx.Exec(
			ctx,
			`delete from keep.devices where id in (select id from keep.devices where user_id = $1 and token <> $2
			order by last_seen_at desc, id offset $3)`,
			userID,
			d.Token,
			maxDevices-1,
		)
		return err
	})
	return registered, isNew, databaseError(err)
}

type registration struct {
	Device
	IsNew bool
}

// register gives a token to a person, taking it from another one. It returns pgx.ErrNoRows if another person took it
// while this waited.
func register(ctx context.Context, tx pgx.Tx, userID string, d Device, now time.Time) (registration, error) {
	if _, err := tx.Exec(ctx, `delete from keep.devices where token = $1 and user_id <> $2`, d.Token, userID); err != nil {
		return registration{}, err
	}
	rows, err := tx.Query(
		ctx,
		`insert into keep.devices as d (id, user_id, token, name, type, created_at, last_seen_at)
			values ($1, $2, $3, $4, $5, $6, $6)
		on conflict (token) do update set name = excluded.name, type = excluded.type, last_seen_at = excluded.last_seen_at
		where d.user_id = excluded.user_id returning `+deviceColumns+`, xmax = 0 as is_new`, // of a new row
		uuid.New(),
		userID,
		d.Token,
		d.Name,
		d.Type,
		now,
	)
	if err != nil {
		return registration{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[registration])
}

// Devices lists a person's devices, oldest first.
func (b *Inbox) Devices(ctx context.Context, userID string) ([]Device, error) {
	rows, err := b.db.Query(ctx, `select `+deviceColumns+` from keep.devices where user_id = $1 order by created_at, id`,
		userID)
	if err != nil {
		return nil, databaseError(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Device])
	return list, databaseError(err)
}

// RemoveDevice removes a person's device, or returns NotFound.
func (b *Inbox) RemoveDevice(ctx context.Context, userID, token string) error {
	removed, err := b.db.Exec(ctx, `delete from keep.devices where user_id = $1 and token = $2`, userID, token)
	if err == nil && removed.RowsAffected() == 0 {
		return &commands.Error{Kind: commands.NotFound, Detail: "no such device"}
	}
	return databaseError(err)
}
