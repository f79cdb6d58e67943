package local

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
)

// purpose is what a mailed link is for.
type purpose string

const (
	reset  purpose = "reset"
	verify purpose = "verify"
)

const (
	mailAgain = time.Minute // at the earliest, to one person for one purpose
	resetMail = `Somebody, most likely you, wants a new password for this address at
%[1]s. Choose it within the hour at

%[2]s

If it was not you, there is nothing to do: the password stays as it is.
`
	verifyMail = `Somebody has signed up with this address at
%[1]s. If it was you, confirm within three days that the address is yours, with
the password that you chose, at

%[2]s

If it was not you, leave it: nobody can use the address without your doing so.
`
)

var links = map[purpose]struct {
	path, subject, text string
	lives               time.Duration
}{
	reset:  {"/reset-password", "A new password", resetMail, time.Hour},
	verify: {"/verify-email", "Confirm your e-mail address", verifyMail, 3 * 24 * time.Hour},
}

// ForgotPassword mails a link that sets a new password, one a minute at most, if the address is known. Nobody waits for it.
func (p *Provider) ForgotPassword(ctx context.Context, email string) error {
	email = strings.TrimSpace(email)
	p.background.Enqueue(ctx, "mail a link", func(ctx context.Context) error {
		if !commands.PlainEmail(email) {
			return nil
		}
		var who person
		err := p.pool.QueryRow(ctx, `
			select user_id, email from keep.people join keep.passwords using (user_id) where lower(email) = lower($1)`, email).Scan(&who.userID, &who.email)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return databaseError("look up an account", err)
		}
		return p.mailLink(ctx, reset, who.userID, who.email)
	})
	return nil
}

// mailLink mails a link with a new token, of which only the SHA-256 is kept, unless that was done just now.
func (p *Provider) mailLink(ctx context.Context, to purpose, userID, email string) error {
	link, now, token := links[to], p.now(), newToken()
	made, err := p.pool.Exec(ctx, `
		insert into keep.mailed_tokens (hash, purpose, user_id, issued_at, expires_at)
		select $1::bytea, $2::text, $3::text, $4::timestamptz, $5::timestamptz
		where not exists (select from keep.mailed_tokens where user_id = $3 and purpose = $2 and issued_at > $6)`,
		sum(token), to, userID, now, now.Add(link.lives), now.Add(-mailAgain))
	if err != nil || made.RowsAffected() == 0 {
		return databaseError("note a link", err)
	}
	url := p.o.Issuer + link.path + "?token=" + token
	return p.o.Mailer.Send(ctx, commands.Mail{To: email, Subject: link.subject, Text: fmt.Sprintf(link.text, p.o.Issuer, url)})
}

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
