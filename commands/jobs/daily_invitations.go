package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/keep"
)

// DailyInvitations limits the invitations on a day in UTC across all nodes. It owns the table invitation_counts.
type DailyInvitations struct{ pool *pgxpool.Pool }

// NewDailyInvitations returns the counter shared by the nodes on a database.
func NewDailyInvitations(pool *pgxpool.Pool) *DailyInvitations { return &DailyInvitations{pool} }

// InvitationBound limits the invitations a day of a tenant, of a person, or to the platform.
type InvitationBound struct {
	counted string
	PerDay  int
}

// PlatformInvitationBound limits all invitations to the platform together.
func PlatformInvitationBound(perDay int) InvitationBound { return InvitationBound{"platform", perDay} }

// TenantInvitationBound limits the invitations of a tenant.
func TenantInvitationBound(id string, perDay int) InvitationBound {
	return InvitationBound{"tenant " + id, perDay}
}

// PersonInvitationBound limits the invitations of a person in all their tenants.
func PersonInvitationBound(id string, perDay int) InvitationBound {
	return InvitationBound{"person " + id, perDay}
}

var errNoPlace = errors.New("a bound is reached")

// Take counts one invitation on a day for all limits, or for none if one is reached, which it returns. Tenants come
// before people, so that transactions lock in one order.
//
// Errors are *commands.Error, Unavailable if the database cannot be reached.
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

// GiveBack undoes a Take of the same limits if the invitation was not made. It locks them in the same order.
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

// RemoveOld deletes the counts of earlier days.
func (d *DailyInvitations) RemoveOld(ctx context.Context, now time.Time) error {
	_, err := d.pool.Exec(ctx, `delete from keep.invitation_counts where day < $1`, now.UTC())
	return countError(err)
}
