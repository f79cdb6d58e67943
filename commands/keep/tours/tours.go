// Package tours keeps which product tours people have completed.
package tours

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/keep"
)

// Tours are the product tours in a database. The errors of its methods are *commands.Error, Unavailable while the
// database cannot be reached.
type Tours struct{ db *pgxpool.Pool }

// New returns the tours in a database.
func New(db *pgxpool.Pool) *Tours { return &Tours{db} }

// Status is how far a person is with a tour. The zero Status is of a tour that they have not begun.
type Status struct {
	CompletedAt *time.Time // nil: not completed
	CreatedAt   *time.Time
	UpdatedAt   *time.Time
}

var keyPattern = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9._@:-]{1,%d}$`, MaxKey))

// ValidKey reports whether a text can be the key of a tour.
func ValidKey(key string) bool { return keyPattern.MatchString(key) }

const columns = `completed_at, created_at, updated_at`

// Status tells how far a person is with a tour.
func (t *Tours) Status(ctx context.Context, userID, key string) (Status, error) {
	s, err := read(
		t.db.Query(ctx, `select `+columns+` from keep.product_tours where user_id = $1 and tour_key = $2`, userID, key),
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return Status{}, nil
	}
	return s, databaseError(err)
}

const (
	// MaxKey is the longest key of a tour, in characters.
	MaxKey = 128
	// maxTours is how many tours are kept of a person that they have set, and how many that others have.
	maxTours = 500
)

// Set notes that a person completed a tour at a time, or with nil that they have begun it. own says that they note it
// themselves. The error is NotFound for a person who is not in the directory, and Conflict for a further tour where 500
// were set so.
func (t *Tours) Set(
	ctx context.Context, userID, key string, completedAt *time.Time, own bool, now time.Time,
) (status Status, err error) {
	err = pgx.BeginFunc(ctx, t.db, func(tx pgx.Tx) error {
		// Calls for one person wait for each other, so that the count holds. Nothing is noted of somebody who is being
		// erased.
		found, err := tx.Exec(ctx, `select from keep.people where user_id = $1 for no key update`, userID)
		if err != nil {
			return err
		}
		if found.RowsAffected() == 0 {
			return &commands.Error{Kind: commands.NotFound, Detail: "there is no such person"}
		}
		var full bool
		if err := tx.QueryRow(ctx, `select count(*) filter (where own = $4) >= $3 and not coalesce(bool_or(tour_key = $2
			and (own or not $4)), false)
			from keep.product_tours where user_id = $1`, userID, key, maxTours, own).
			Scan(&full); err != nil {
			return err
		}
		if full {
			return &commands.Error{
				Kind:   commands.Conflict,
				Detail: fmt.Sprintf("the person has %d product tours, and may not have more", maxTours),
			}
		}
		status, err = read(
			tx.Query(
				ctx,
				`insert into keep.product_tours (user_id, tour_key, completed_at, created_at, updated_at, own)
					values ($1, $2, $3, $4, $4, $5)
			on conflict (user_id, tour_key) do update set completed_at = excluded.completed_at, updated_at =
				excluded.updated_at, own = product_tours.own or excluded.own
			returning `+columns,
				userID,
				key,
				completedAt,
				now,
				own,
			),
		)
		return err
	})
	return status, databaseError(err)
}

// Reset makes a tour one that the person has not begun. It may be repeated.
func (t *Tours) Reset(ctx context.Context, userID, key string) error {
	_, err := t.db.Exec(ctx, `delete from keep.product_tours where user_id = $1 and tour_key = $2`, userID, key)
	return databaseError(err)
}

// Knows implements commands.PersonalData: tours are kept of those alone whom the directory knows.
func (t *Tours) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements commands.PersonalData. It comes after the directory's, so that no tour is noted after it.
func (t *Tours) Erase(ctx context.Context, userID string) error {
	_, err := t.db.Exec(ctx, `delete from keep.product_tours where user_id = $1`, userID)
	return databaseError(err)
}

// ForgetTenant implements commands.TenantData: it drops the tours of a tenant's demo people. It comes after the
// directory's, as Erase does.
func (t *Tours) ForgetTenant(ctx context.Context, tenantID string) error {
	_, err := t.db.Exec(ctx, `delete from keep.product_tours where user_id = any($1)`, commands.DemoPeopleIDs(tenantID))
	return databaseError(err)
}

func read(rows pgx.Rows, err error) (Status, error) {
	if err != nil {
		return Status{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Status])
}

func databaseError(err error) error {
	return keep.DatabaseError("product tours cannot be reached at this moment", err)
}
