package directory

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/commands"
	"flagledger/commands/people"
)

// Add adds a person who signs up, in a transaction of the local identity provider. It returns Conflict if the address
// is taken.
func Add(ctx context.Context, tx pgx.Tx, c people.Claims, now time.Time) error {
	_, err := tx.Exec(ctx,
		`insert into keep.people (user_id, email, email_verified, display_name, created_at) values ($1, $2, $3, $4, $5)`,
		c.UserID, c.Email, c.EmailVerified, c.DisplayName, now)
	if db, ok := errors.AsType[*pgconn.PgError](err); ok && db.ConstraintName == "people_email" {
		return &commands.Error{Kind: commands.Conflict, Detail: "an account with this e-mail address already exists"}
	}
	return err
}

// MarkVerified records that a person has proved their address, in a transaction of the local identity provider. It
// reports whether they have an address.
func MarkVerified(ctx context.Context, tx pgx.Tx, userID string) (done bool, err error) {
	marked, err := tx.Exec(ctx, `update keep.people set email_verified = true where user_id = $1 and email is not null`,
		userID)
	return marked.RowsAffected() > 0, err
}

// VerifyByReset records that a person who sets a new password has proved their address, in a transaction of the local
// identity provider. If it was unverified, it deletes the name, which another person may have chosen.
func VerifyByReset(ctx context.Context, tx pgx.Tx, userID string) error {
	_, err := tx.Exec(
		ctx,
		`update keep.people set email_verified = true, display_name = '' where user_id = $1 and email is not null
			and not email_verified`,
		userID,
	)
	return err
}

// Email returns a person's address; "" if unknown.
func (d *Directory) Email(ctx context.Context, userID string) (email string, err error) {
	err = d.db.QueryRow(ctx, `select coalesce((select email from keep.people where user_id = $1), '')`, userID).
		Scan(&email)
	return email, databaseError(err)
}

// SaveProfile saves a person's name and address from the identity provider, and reports whether the person is new. A
// verified address stays verified, whatever an older token says, and is taken from any other person. An assumed
// verification is not stored.
func (d *Directory) SaveProfile(ctx context.Context, c people.Claims) (isNew bool, err error) {
	proved := c.EmailProved()
	note := func(email string) error {
		err := d.db.QueryRow(ctx, `
			insert into keep.people as p (user_id, email, email_verified, display_name, created_at)
			values ($1, nullif($2, ''), $3, $4, $5)
			on conflict (user_id) do update set email = excluded.email, display_name = excluded.display_name,
				email_verified = excluded.email_verified or p.email_verified
					and coalesce(lower(p.email collate "C") = lower(excluded.email collate "C"), false)
			where (p.email, p.display_name) is distinct from (excluded.email, excluded.display_name) or excluded.email_verified
				and not p.email_verified
			returning xmax = 0`, // of a new row
			c.UserID, email, proved && email != "", c.DisplayName, d.now()).Scan(&isNew)
		if errors.Is(err, pgx.ErrNoRows) { // nothing changed
			return nil
		}
		return err
	}
	err = note(c.Email)
	if db, ok := errors.AsType[*pgconn.PgError](err); ok && db.ConstraintName == "people_email" {
		if !proved {
			err = note("")
		} else if _, err = d.db.Exec(ctx, `
			update keep.people set email = null, email_verified = false where lower(email collate "C") = lower($1 collate "C")
				and user_id <> $2`, c.Email, c.UserID); err == nil {
			err = note(c.Email)
		}
	}
	if err != nil {
		return false, databaseError(err)
	}
	return isNew, nil
}

// SaveDemoPeople saves the names and addresses of people without an account. It is idempotent. The addresses do not
// exist, and do not count as verified.
func (d *Directory) SaveDemoPeople(ctx context.Context, people []commands.DemoPerson) error {
	var ids, emails, names []string
	for _, p := range people {
		ids, emails, names = append(ids, p.UserID), append(emails, p.Email), append(names, p.Name)
	}
	_, err := d.db.Exec(ctx, `insert into keep.people (user_id, email, email_verified, display_name, created_at)
		select id, email, false, name, $4::timestamptz from unnest($1::text[], $2::text[], $3::text[]) demo (id, email, name)
			on conflict do nothing`,
		ids, emails, names, d.now())
	return databaseError(err)
}
