// Package local is an identity provider inside the service, for development, tests, and small installations. Accounts
// and sessions are keepings.
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
	"flagledger/commands/notify"
	"flagledger/commands/people"
)

// Options configure a Provider.
type Options struct {
	Keys     *keys.Keys // signs its tokens
	Issuer   string     // of its tokens: the service's public URL, which also begins mailed links
	Audience string     // of its tokens
	// AssumeEmailsVerified makes addresses count as verified without a proof, for development. This is not stored, nor
	// in tokens.
	AssumeEmailsVerified bool
	Links                *jobs.Links   // queues mails with links
	Mailer               notify.Mailer // sends them
	Now                  func() time.Time
	HashMemory           uint32 // KiB for hashing a new password; the recommended 19 MiB if 0. For tests
	// Hash calls hash when there is capacity, or returns a refusal. If nil, hash runs at once.
	Hash func(ctx context.Context, hash func()) error
}

// Provider is the local identity provider.
type Provider struct {
	pool   *pgxpool.Pool
	o      Options
	nobody passwordHash // used for an unknown address
}

var (
	_ people.Identity = (*Provider)(nil)
	_ jobs.LinkMailer = (*Provider)(nil)
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

// person is the directory's data of a person with a local password.
type person struct {
	userID, email, displayName string
	verified                   bool // whether the address is proved
}

// SignUp creates an account and signs it in. It returns Invalid with the wrong fields, and Conflict for an address
// that is taken in any case.
func (p *Provider) SignUp(ctx context.Context, email, password, displayName string) (people.Session, error) {
	return p.signUp(ctx, email, password, displayName, false)
}

// SignUpVerified works like SignUp for a person who has proved that the address is theirs.
func (p *Provider) SignUpVerified(ctx context.Context, email, password, displayName string) (people.Session, error) {
	return p.signUp(ctx, email, password, displayName, true)
}

// MarkVerified records that an account's owner has proved the address.
func (p *Provider) MarkVerified(ctx context.Context, userID string) error {
	return databaseError("mark an address as verified", pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		_, err := directory.MarkVerified(ctx, tx, userID)
		return err
	}))
}

func (p *Provider) signUp(
	ctx context.Context, email, password, displayName string, verified bool,
) (people.Session, error) {
	if err := people.CheckSignUp(email, password, displayName); err != nil {
		return people.Session{}, err
	}
	email, _ = commands.ParseEmail(email)
	var kept string
	if err := p.o.Hash(ctx, func() { kept = hash(password, p.o.HashMemory).String() }); err != nil {
		return people.Session{}, err
	}
	now := p.now()
	userID, err := uuid.NewV7()
	if err != nil {
		return people.Session{}, err
	}
	who := person{userID: userID.String(), email: email, displayName: displayName, verified: verified}
	s := newSession(who, now)
	var refresh string
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		err := directory.Add(
			ctx,
			tx,
			people.Claims{UserID: who.userID, Email: who.email, EmailVerified: who.verified, DisplayName: who.displayName},
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
		return people.Session{}, databaseError("sign up", err)
	}
	return p.signedIn(who, s, refresh)
}

// SignIn starts a session for a correct address and password. It hashes for an unknown address too, so that its
// duration does not reveal known addresses.
func (p *Provider) SignIn(ctx context.Context, email, password string) (people.Session, error) {
	email, ok := commands.ParseEmail(email)
	wrong := refuse("the e-mail address or the password is wrong")
	if !ok || len(password) > commands.MaxPassword {
		return people.Session{}, wrong // no account can have these
	}
	var who person
	var kept string
	err := p.pool.QueryRow(ctx, `
		select user_id, email, email_verified, display_name, hash
		from keep.people join keep.passwords using (user_id) where lower(email collate "C") = lower($1 collate "C")`, email).
		Scan(&who.userID, &who.email, &who.verified, &who.displayName, &kept)
	known := !errors.Is(err, pgx.ErrNoRows)
	if err != nil && known {
		return people.Session{}, databaseError("look up an account", err)
	}
	against := p.nobody
	if known {
		if against, err = parse(kept); err != nil {
			return people.Session{}, &commands.Error{Detail: "read the password of " + who.userID, Err: err}
		}
	}
	var right bool
	if err := p.o.Hash(ctx, func() { right = against.matches(password) }); err != nil {
		return people.Session{}, err
	}
	if !known || !right {
		return people.Session{}, wrong
	}
	now := p.now()
	s := newSession(who, now)
	var refresh string
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		// A password change since it was read has ended all sessions from before.
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
		case changing: // the session ends if the password is changed
			s.authTime = from.Add(-time.Second).UTC()
		case from != nil && from.After(now):
			s.authTime = from.UTC()
		}
		refresh, err = grant(ctx, tx, s, now)
		return err
	})
	if err != nil {
		return people.Session{}, databaseError("sign in", err)
	}
	return p.signedIn(who, s, refresh)
}

// personOf reads a person, and locks their password until tx ends.
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

func (p *Provider) signedIn(who person, s session, refresh string) (people.Session, error) {
	text, expires, err := p.sign(who, s)
	if err != nil {
		return people.Session{}, err
	}
	claims := p.claimsOf(who, s)
	claims.ExpiresAt = expires
	return people.Session{
		Claims: claims, IDToken: text, RefreshToken: refresh, ExpiresIn: keys.TokenTTL,
	}, nil
}

// claimsOf returns the claims of a session's ID tokens without the expiry.
func (p *Provider) claimsOf(who person, s session) people.Claims {
	return p.assumeVerified(people.Claims{
		UserID: who.userID, Email: who.email, EmailVerified: who.verified, DisplayName: who.displayName,
		Provider: provider, SessionID: s.id, AuthTime: s.authTime.UTC().Truncate(time.Second),
	})
}

// assumeVerified returns canonical claims, with an unproved address marked as verified if the settings say so.
func (p *Provider) assumeVerified(c people.Claims) people.Claims {
	if !c.EmailVerified && p.o.AssumeEmailsVerified {
		c.EmailVerified, c.EmailAssumed = true, true
	}
	return c.Canonical()
}

func (p *Provider) now() time.Time { return p.o.Now().UTC() }

func refuse(detail string) error {
	return &commands.Error{Kind: commands.Unauthenticated, Detail: detail}
}

// databaseError returns keep.DatabaseError with the failed operation in the cause.
func databaseError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*commands.Error](err); refused {
		return err
	}
	return keep.DatabaseError("accounts cannot be reached at this moment", fmt.Errorf("%s: %w", doing, err))
}
