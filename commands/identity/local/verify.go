package local

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
)

// VerifyEmail marks a link's address as verified if the password is correct.
func (p *Provider) VerifyEmail(ctx context.Context, token, password string, mayVerify func(userID string) error) error {
	if !hasTokenLength(token) {
		return commands.InvalidLink()
	}
	var userID, kept string
	err := p.pool.QueryRow(ctx, `
		select user_id, passwords.hash from keep.mailed_tokens t join keep.passwords using (user_id)
		where t.hash = $1 and purpose = $2 and expires_at > $3`, sum(token), verify, p.now()).Scan(&userID, &kept)
	if errors.Is(err, pgx.ErrNoRows) {
		return commands.InvalidLink()
	}
	if err != nil {
		return databaseError("look up a link", err)
	}
	if err := mayVerify(userID); err != nil {
		return err
	}
	if password == "" {
		return commands.InvalidField("password", "is required")
	}
	against, err := parse(kept)
	if err != nil {
		return &commands.Error{Detail: "read the password of " + userID, Err: err}
	}
	var right bool
	if len(password) <= commands.MaxPassword {
		if err := p.o.Hash(ctx, func() { right = against.matches(password) }); err != nil {
			return err
		}
	}
	if !right {
		return commands.InvalidField("password", "is wrong")
	}
	verified := false
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		used, err := tx.Exec(ctx, `delete from keep.mailed_tokens where hash = $1 and purpose = $2 and expires_at > $3`,
			sum(token), verify, p.now())
		if err == nil && used.RowsAffected() > 0 {
			verified, err = directory.MarkVerified(ctx, tx, userID)
		}
		return err
	})
	if err == nil && !verified {
		err = commands.InvalidLink()
	}
	return databaseError("verify an address", err)
}
