// Package local is an identity provider in the service itself: for development, for tests, and for those who want no
// other. Accounts and sessions are in the keepings.
package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/keep"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/keys"
)

// Options are the settings of a Provider.
type Options struct {
	Keys     *keys.Keys // that its tokens are signed with
	Issuer   string     // of its tokens: the service's public URL, which the links in mails begin with
	Audience string     // of its tokens
	// addresses count as verified without a proof, which is not stored and stands in no token; for development
	AssumeEmailsVerified bool
	Links                *jobs.Links     // that are mailed
	Mailer               commands.Mailer // of links
	Now                  func() time.Time
	HashMemory           uint32 // KiB that the hash of a new password takes; the recommended 19 MiB where 0. For tests
	// Hash calls what hashes a password once there is room, and returns the refusal where there is none; at once where it
	// is nil.
	Hash func(ctx context.Context, hash func()) error
}

// Provider is the local identity provider.
type Provider struct {
	pool   *pgxpool.Pool
	o      Options
	nobody passwordHash // stands in for the password of an address that is not known
}

var (
	_ commands.Identity = (*Provider)(nil)
	_ jobs.LinkMailer   = (*Provider)(nil)
)

// New returns the provider over a database.
func New(pool *pgxpool.Pool, o Options) *Provider {
	if o.HashMemory == 0 {
		o.HashMemory = recommendedMemory
	}
	if o.Hash == nil {
		o.Hash = func(_ context.Context, hash func()) error {
			hash()
			return nil
		}
	}
	return &Provider{pool: pool, o: o, nobody: newPasswordHash(o.HashMemory)}
}

// person is what the directory says of somebody who has a password here.
type person struct {
	userID, email, displayName string
	verified                   bool // the address, by a proof
}

// SignUp creates an account and signs it in. What is wrong with the fields is told at once, as Invalid under email,
// password and displayName; an address that is taken, in whatever case, is Conflict.
func (p *Provider) SignUp(ctx context.Context, email, password, displayName string) (commands.Session, error) {
	return p.signUp(ctx, email, password, displayName, false)
}

// SignUpVerified is SignUp for somebody who has shown that the address is theirs.
func (p *Provider) SignUpVerified(ctx context.Context, email, password, displayName string) (commands.Session, error) {
	return p.signUp(ctx, email, password, displayName, true)
}

// MarkVerified notes that the address of an account is its owner's.
func (p *Provider) MarkVerified(ctx context.Context, userID string) error {
	return databaseError("mark an address as verified", pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		_, err := directory.MarkVerified(ctx, tx, userID)
		return err
	}))
}

func (p *Provider) signUp(
	ctx context.Context, email, password, displayName string, verified bool,
) (commands.Session, error) {
	if err := commands.CheckSignUp(email, password, displayName); err != nil {
		return commands.Session{}, err
	}
	email, _ = commands.ParseEmail(email)
	var kept string
	if err := p.o.Hash(ctx, func() { kept = hash(password, p.o.HashMemory).String() }); err != nil {
		return commands.Session{}, err
	}
	now := p.now()
	userID, err := uuid.NewV7()
	if err != nil {
		return commands.Session{}, err
	}
	who := person{userID: userID.String(), email: email, displayName: displayName, verified: verified}
	s := newSession(who, now)
	var refresh string
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		err := directory.Add(
			ctx,
			tx,
			commands.Claims{UserID: who.userID, Email: who.email, EmailVerified: who.verified, DisplayName: who.displayName},
			now,
		)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(
			ctx, `insert into keep.passwords (user_id, hash) values ($1, $2)`, who.userID, kept,
		); err != nil {
			return err
		}
		if !who.verified && !p.o.AssumeEmailsVerified {
			if err := p.o.Links.QueueVerificationTx(ctx, tx, who.userID, who.userID); err != nil {
				return err
			}
		}
		refresh, err = grant(ctx, tx, s, now)
		return err
	})
	if err != nil {
		return commands.Session{}, databaseError("sign up", err)
	}
	return p.signedIn(who, s, refresh)
}

// SignIn begins a session where the address and the password are right. It hashes for an unknown address too, so that
// the time it takes does not tell which addresses are known.
func (p *Provider) SignIn(ctx context.Context, email, password string) (commands.Session, error) {
	email, ok := commands.ParseEmail(email)
	wrong := refuse("the e-mail address or the password is wrong")
	if !ok || len(password) > commands.MaxPassword {
		return commands.Session{}, wrong // can belong to no account
	}
	var who person
	var kept string
	err := p.pool.QueryRow(ctx, `
		select user_id, email, email_verified, display_name, hash
		from keep.people join keep.passwords using (user_id) where lower(email collate "C") = lower($1 collate "C")`, email).
		Scan(&who.userID, &who.email, &who.verified, &who.displayName, &kept)
	known := !errors.Is(err, pgx.ErrNoRows)
	if err != nil && known {
		return commands.Session{}, databaseError("look up an account", err)
	}
	against := p.nobody
	if known {
		if against, err = parse(kept); err != nil {
			return commands.Session{}, &commands.Error{Detail: "read the password of " + who.userID, Err: err}
		}
	}
	var right bool
	if err := p.o.Hash(ctx, func() { right = against.matches(password) }); err != nil {
		return commands.Session{}, err
	}
	if !known || !right {
		return commands.Session{}, wrong
	}
	now := p.now()
	s := newSession(who, now)
	var refresh string
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		// The password may have been changed since it was read, which has ended all sessions that began before.
		var from *time.Time
		var changing bool
		err := tx.QueryRow(ctx, `
			select sessions_from, coalesce(changing_until > clock_timestamp(), false) from keep.passwords where user_id = $1
				and hash = $2 for share`,
			who.userID, kept).Scan(&from, &changing)
		if errors.Is(err, pgx.ErrNoRows) {
			return wrong
		}
		if err != nil {
			return err
		}
		switch {
		case changing: // it ends with the password, if that is changed
			s.authTime = from.Add(-time.Second).UTC()
		case from != nil && from.After(now):
			s.authTime = from.UTC()
		}
		refresh, err = grant(ctx, tx, s, now)
		return err
	})
	if err != nil {
		return commands.Session{}, databaseError("sign in", err)
	}
	return p.signedIn(who, s, refresh)
}

// personOf finds a person, whose password stays as it is until tx ends.
func (p *Provider) personOf(ctx context.Context, tx pgx.Tx, userID string) (person, error) {
	who := person{userID: userID}
	err := tx.QueryRow(ctx, `
		select email, email_verified, display_name
		from keep.people join keep.passwords using (user_id) where user_id = $1 and email is not null for share of passwords`, userID).
		Scan(&who.email, &who.verified, &who.displayName)
	if errors.Is(err, pgx.ErrNoRows) {
		return person{}, refuse("the account is gone")
	}
	return who, err
}

func newSession(who person, now time.Time) session {
	return session{id: uuid.NewString(), userID: who.userID, authTime: now}
}

func (p *Provider) signedIn(who person, s session, refresh string) (commands.Session, error) {
	text, expires, err := p.sign(who, s)
	if err != nil {
		return commands.Session{}, err
	}
	claims := p.claimsOf(who, s)
	claims.ExpiresAt = expires
	return commands.Session{
		Claims: claims, IDToken: text, RefreshToken: refresh, ExpiresIn: keys.TokenTTL,
	}, nil
}

// claimsOf are the claims of the ID tokens of a session, without the expiry.
func (p *Provider) claimsOf(who person, s session) commands.Claims {
	return p.assumeVerified(commands.Claims{
		UserID: who.userID, Email: who.email, EmailVerified: who.verified, DisplayName: who.displayName,
		Provider: provider, SessionID: s.id, AuthTime: s.authTime.UTC().Truncate(time.Second),
	})
}

// assumeVerified has an address count as verified that nobody has proved, where the settings say so. It returns the
// claims in their canonical form.
func (p *Provider) assumeVerified(c commands.Claims) commands.Claims {
	if !c.EmailVerified && p.o.AssumeEmailsVerified {
		c.EmailVerified, c.EmailAssumed = true, true
	}
	return c.Canonical()
}

func (p *Provider) now() time.Time { return p.o.Now().UTC() }

func refuse(detail string) error {
	return &commands.Error{Kind: commands.Unauthenticated, Detail: detail}
}

// databaseError is keep.DatabaseError, with what failed beside the cause.
func databaseError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*commands.Error](err); refused {
		return err
	}
	return keep.DatabaseError("accounts cannot be reached at this moment", fmt.Errorf("%s: %w", doing, err))
}
