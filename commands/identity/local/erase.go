package local

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Accounts holds the passwords, sessions and mailed links of the local identity provider. They are erased even if a
// different provider is in use.
type Accounts struct{ pool *pgxpool.Pool }

// NewAccounts returns the accounts in a database.
func NewAccounts(pool *pgxpool.Pool) *Accounts { return &Accounts{pool} }

// Knows reports whether a person has a local password.
func (a *Accounts) Knows(ctx context.Context, userID string) (known bool, err error) {
	err = a.pool.QueryRow(ctx, `select exists (select from keep.passwords where user_id = $1)`, userID).Scan(&known)
	return known, databaseError("look up an account", err)
}

// Erase deletes a person's password, sessions and mailed links. It is idempotent.
func (a *Accounts) Erase(ctx context.Context, userID string) error {
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		for _, statement := range []string{
			// This waits for concurrent sign-ins and refreshes, whose tokens are deleted next.
			`delete from keep.passwords where user_id = $1`,
			`delete from keep.refresh_tokens where user_id = $1`,
			`delete from keep.mailed_tokens where user_id = $1`,
		} {
			if _, err := tx.Exec(ctx, statement, userID); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
	return databaseError("erase an account", err)
}
