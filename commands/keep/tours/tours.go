// Package tours stores which product tours people have completed.
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

// Tours holds the product tours in a database. Errors are *commands.Error, Unavailable if the database cannot be
// reached.
type Tours struct{ db *pgxpool.Pool }

// New returns the tours in a database.
func New(db *pgxpool.Pool) *Tours { return &Tours{db} }

// Status is a person's progress in a tour. The zero Status means not begun.
type Status struct {
	CompletedAt *time.Time // nil: not completed
	CreatedAt   *time.Time
	UpdatedAt   *time.Time
}

var keyPattern = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9._@:-]{1,%d}$`, MaxKey))

// ValidKey reports whether a text can be the key of a tour.
func ValidKey(key string) bool { return keyPattern.MatchString(key) }

const columns = `completed_at, created_at, updated_at`

// Status returns a person's progress in a tour.
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
	// maxTours limits a person's tours that they set themselves, and those that others set.
	maxTours = 500
)

// Set records that a person completed a tour at a time, or with nil that they began it. own means that they record it
// themselves. It returns NotFound for a person who is not in the directory, and Conflict for another tour above 500.
func (t *Tours) Set(
	ctx context.Context, userID, key string, completedAt *time.Time, own bool, now time.Time,
) (status Status, err error) {
	err = pgx.BeginFunc(ctx, t.db, func(tx pgx.Tx) error {
		// Calls for one person run one after the other, so that the count is exact. Nothing is recorded for a person
		// who is being erased.
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
				Detail: fmt.Sprintf("the person has %d product tours, which is the limit", maxTours),
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

// Reset resets a tour to not begun. It is idempotent.
func (t *Tours) Reset(ctx context.Context, userID, key string) error {
	_, err := t.db.Exec(ctx, `delete from keep.product_tours where user_id = $1 and tour_key = $2`, userID, key)
	return databaseError(err)
}

// Knows implements people.PersonalData. Only people in the directory have tours.
func (t *Tours) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements people.PersonalData. Call it after the directory's, so that no tour is recorded afterwards.
func (t *Tours) Erase(ctx context.Context, userID string) error {
	_, err := t.db.Exec(ctx, `delete from keep.product_tours where user_id = $1`, userID)
	return databaseError(err)
}

// ForgetTenant implements tenants.TenantData: it deletes the tours of a tenant's demo people. Call it after the
// directory's, as Erase.
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
