package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/keep"
)

// DailyInvitations bounds how many invitations are made on a day in UTC, by all nodes. It owns the table
// invitation_counts.
type DailyInvitations struct{ pool *pgxpool.Pool }

// NewDailyInvitations returns the counter that all nodes on a database share.
func NewDailyInvitations(pool *pgxpool.Pool) *DailyInvitations { return &DailyInvitations{pool} }

// InvitationBound is how many invitations a day are made by a tenant, by a person, or to the platform.
type InvitationBound struct {
	counted string
	PerDay  int
}

// PlatformInvitationBound is the bound of all invitations to the platform together.
func PlatformInvitationBound(perDay int) InvitationBound { return InvitationBound{"platform", perDay} }

// TenantInvitationBound is the bound of a tenant.
func TenantInvitationBound(id string, perDay int) InvitationBound {
	return InvitationBound{"tenant " + id, perDay}
}

// PersonInvitationBound is the bound of a person, in all their tenants together.
func PersonInvitationBound(id string, perDay int) InvitationBound {
	return InvitationBound{"person " + id, perDay}
}

var errNoPlace = errors.New("a bound is reached")

// Take counts one more invitation on the day of now for all bounds, or for none and returns the one that is reached.
// Tenants come before people, so that transactions lock in one order.
//
// Errors are *commands.Error, Unavailable while the database cannot be reached.
func (d *DailyInvitations) Take(
	ctx context.Context, now time.Time, bounds ...InvitationBound,
) (reached *InvitationBound, err error) {
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		for _, b := range bounds {
			row, err := tx.Exec(ctx, `insert into keep.invitation_counts as c (counted, day, invitations) values ($1, $2, 1)
				on conflict (counted, day) do update set invitations = c.invitations + 1 where c.invitations < $3`, b.counted, now.UTC(), b.PerDay)
			if err != nil {
				return err
			}
			if row.RowsAffected() == 0 {
				reached = &b
				return errNoPlace
			}
		}
		return nil
	})
	if errors.Is(err, errNoPlace) {
		return reached, nil
	}
	return nil, countError(err)
}

// GiveBack undoes a Take of the same bounds: the invitation was not made. It locks them in the same order.
func (d *DailyInvitations) GiveBack(ctx context.Context, now time.Time, bounds ...InvitationBound) error {
	return countError(pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		for _, b := range bounds {
			if _, err := tx.Exec(
				ctx,
				`update keep.invitation_counts set invitations = invitations - 1 where counted = $1 and day = $2
					and invitations > 0`,
				b.counted,
				now.UTC(),
			); err != nil {
				return err
			}
		}
		return nil
	}))
}

func countError(err error) error {
	return keep.DatabaseError("invitations cannot be counted at this moment", err)
}

// RemoveOld forgets the counts of days before that of now.
func (d *DailyInvitations) RemoveOld(ctx context.Context, now time.Time) error {
	_, err := d.pool.Exec(ctx, `delete from keep.invitation_counts where day < $1`, now.UTC())
	return countError(err)
}
