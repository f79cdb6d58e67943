package local

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
)

// sum is what is kept of a token.
func sum(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// hasTokenLength tells whether a text is as long as the tokens that are mailed.
func hasTokenLength(token string) bool {
	return len(token) == base64.RawURLEncoding.EncodedLen(tokenBits/8)
}

var badLink = map[string]string{"token": "is not valid: it has been used, has expired, or never was"}

func invalid(fields map[string]string) error {
	return &commands.Error{Kind: commands.Invalid, Detail: "validation failed", Fields: fields}
}

// PrepareReset checks the token of a mailed link, and a password for the person that it was mailed to. Who could open it reads the mails to the
// address, which is verified when the password is set.
func (p *Provider) PrepareReset(ctx context.Context, token, password string) (commands.PasswordChange, error) {
	userID := ""
	if hasTokenLength(token) {
		err := p.pool.QueryRow(ctx, `select user_id from keep.mailed_tokens where hash = $1 and purpose = $2 and expires_at > $3`, sum(token), reset, p.now()).Scan(&userID)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return commands.PasswordChange{}, databaseError("look up a link", err)
		}
	}
	if err := commands.CheckNewPassword(password); err != nil {
		if refusal, ok := errors.AsType[*commands.Error](err); ok && userID == "" {
			refusal.Fields["token"] = badLink["token"]
		}
		return commands.PasswordChange{}, err
	}
	if userID == "" {
		return commands.PasswordChange{}, invalid(badLink)
	}
	var kept string
	if err := p.hashers.run(ctx, func() { kept = hash(password, p.o.HashMemory).String() }); err != nil {
		return commands.PasswordChange{}, err
	}
	ends, err := p.prepareChange(ctx, userID, "", "")
	if errors.Is(err, pgx.ErrNoRows) {
		return commands.PasswordChange{}, invalid(badLink)
	}
	return commands.PasswordChange{Ends: ends, Set: func(ctx context.Context) error {
		err := p.setPassword(ctx, ends, kept, func(tx pgx.Tx) error {
			used, err := tx.Exec(ctx, `delete from keep.mailed_tokens where hash = $1 and purpose = $2 and expires_at > $3`, sum(token), reset, p.now())
			if err == nil && used.RowsAffected() == 0 {
				err = invalid(badLink)
			}
			if err != nil {
				return err
			}
			_, err = directory.MarkVerified(ctx, tx, userID)
			return err
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return invalid(badLink)
		}
		return databaseError("reset a password", err)
	}}, databaseError("prepare a password", err)
}

// PrepareUpdate checks the current password of somebody who is signed in, and the one that they want.
func (p *Provider) PrepareUpdate(ctx context.Context, c commands.Claims, current, password string) (commands.PasswordChange, error) {
	wrong := refuse("the current password is wrong")
	if err := commands.CheckPasswordChange(current, password); err != nil {
		return commands.PasswordChange{}, err
	}
	var before string
	err := p.pool.QueryRow(ctx, `select hash from keep.people join keep.passwords using (user_id) where user_id = $1 and email is not null`, c.UserID).Scan(&before)
	if errors.Is(err, pgx.ErrNoRows) || len(current) > commands.MaxPassword {
		return commands.PasswordChange{}, wrong
	}
	if err != nil {
		return commands.PasswordChange{}, databaseError("look up an account", err)
	}
	against, err := parse(before)
	if err != nil {
		return commands.PasswordChange{}, &commands.Error{Detail: "read the password of " + c.UserID, Err: err}
	}
	var right bool
	var kept string
	err = p.hashers.run(ctx, func() {
		if right = against.matches(current); right {
			kept = hash(password, p.o.HashMemory).String()
		}
	})
	if err != nil {
		return commands.PasswordChange{}, err
	}
	if !right {
		return commands.PasswordChange{}, wrong
	}
	ends, err := p.prepareChange(ctx, c.UserID, before, c.SessionID)
	if errors.Is(err, pgx.ErrNoRows) { // changed meanwhile
		return commands.PasswordChange{}, wrong
	}
	return commands.PasswordChange{Ends: ends, Set: func(ctx context.Context) error {
		err := p.setPassword(ctx, ends, kept, nil)
		if errors.Is(err, pgx.ErrNoRows) {
			return wrong
		}
		return databaseError("change a password", err)
	}}, databaseError("prepare a password", err)
}

// VerifyEmail notes that an address is its owner's, to whom a link was mailed, and who knows the password.
func (p *Provider) VerifyEmail(ctx context.Context, token, password string) error {
	if !hasTokenLength(token) {
		return invalid(badLink)
	}
	var userID, kept string
	err := p.pool.QueryRow(ctx, `
		select user_id, passwords.hash from keep.mailed_tokens t join keep.passwords using (user_id)
		where t.hash = $1 and purpose = $2 and expires_at > $3`, sum(token), verify, p.now()).Scan(&userID, &kept)
	if errors.Is(err, pgx.ErrNoRows) {
		return invalid(badLink)
	}
	if err != nil {
		return databaseError("look up a link", err)
	}
	if password == "" {
		return invalid(map[string]string{"password": "is required"})
	}
	against, err := parse(kept)
	if err != nil {
		return &commands.Error{Detail: "read the password of " + userID, Err: err}
	}
	var right bool
	if len(password) <= commands.MaxPassword {
		if err := p.hashers.run(ctx, func() { right = against.matches(password) }); err != nil {
			return err
		}
	}
	if !right {
		return invalid(map[string]string{"password": "is wrong"})
	}
	verified := false
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		used, err := tx.Exec(ctx, `delete from keep.mailed_tokens where hash = $1 and purpose = $2 and expires_at > $3`, sum(token), verify, p.now())
		if err == nil && used.RowsAffected() > 0 {
			verified, err = directory.MarkVerified(ctx, tx, userID)
		}
		return err
	})
	if err == nil && !verified {
		err = invalid(badLink)
	}
	return databaseError("verify an address", err)
}
