package firebase

import (
	"context"
	"time"

	"firebase.google.com/go/v4/auth"
	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/retry"
)

// sighting holds the known tokens of a person.
type sighting struct {
	began   time.Time // of the oldest session
	expires time.Time // of the last token
}

const (
	askAtOnce = 100 // people in one call of Firebase
	askTakes  = time.Minute
)

// note records whose token was seen.
func (p *Provider) note(c people.Claims) {
	p.seen.Compute(c.UserID, func(s sighting, known bool) (sighting, xsync.ComputeOp) {
		if !known || c.AuthTime.Before(s.began) {
			s.began = c.AuthTime
		}
		if c.ExpiresAt.After(s.expires) {
			s.expires = c.ExpiresAt
		}
		return s, xsync.UpdateOp
	})
}

// watch asks Firebase from time to time which of the known sessions have ended, until ctx ends.
func (p *Provider) watch(ctx context.Context) {
	retry.Every(ctx, p.o.CheckEvery, func() {
		if err := p.check(ctx); err != nil && ctx.Err() == nil {
			p.o.Log.Warn("Firebase does not tell which sessions have ended; they go on until it does", "retry_in",
				p.o.CheckEvery, "err", secretless(err))
		}
	})
}

func (p *Provider) check(ctx context.Context) error {
	now := p.o.Now()
	var batch []auth.UserIdentifier
	var failed error
	ask := func() {
		if err := p.ask(ctx, batch); err != nil {
			failed = err
		}
		batch = nil
	}
	p.seen.Range(func(userID string, s sighting) bool {
		if s.expires.Before(now) {
			p.seen.Delete(userID)
			return true
		}
		if batch = append(batch, auth.UIDIdentifier{UID: userID}); len(batch) == askAtOnce {
			ask()
		}
		return ctx.Err() == nil && failed == nil
	})
	if len(batch) > 0 && failed == nil {
		ask()
	}
	return failed
}

// ask asks about some people, and reports their ended sessions and deleted accounts.
func (p *Provider) ask(ctx context.Context, people []auth.UserIdentifier) error {
	ctx, cancel := context.WithTimeout(ctx, askTakes)
	defer cancel()
	now := p.o.Now()
	found, err := p.auth.GetUsers(ctx, people)
	if err != nil {
		return err
	}
	for _, user := range found.Users {
		from := time.UnixMilli(user.TokensValidAfterMillis)
		if user.Disabled {
			from = now
		}
		if err := p.end(ctx, user, from); err != nil {
			return err
		}
	}
	for _, missing := range found.NotFound {
		id, ok := missing.(auth.UIDIdentifier)
		if !ok {
			continue
		}
		switch err := p.o.Gone(ctx, id.UID); {
		case err == nil:
			p.o.Log.Info("a person whose account was deleted at Firebase is erased", "user", id.UID)
		case commands.KindOf(err) != commands.NotFound: // NotFound: the person never used the service
			return err
		}
		p.seen.Delete(id.UID)
	}
	return nil
}

// end reports that a person's sessions from before a time have ended, if any is known. A disabled account is dropped
// until it is seen again: all its sessions have ended.
func (p *Provider) end(ctx context.Context, user *auth.UserRecord, from time.Time) error {
	from = from.Truncate(time.Second).UTC()
	before, ok := p.seen.Load(user.UID)
	if !ok || !before.began.Before(from) {
		return nil
	}
	if err := p.o.End(ctx, commands.EndSessions{UserID: user.UID, Before: from}); err != nil {
		return err
	}
	p.seen.Compute(user.UID, func(s sighting, known bool) (sighting, xsync.ComputeOp) {
		switch {
		case !known || !s.began.Before(from):
			return s, xsync.CancelOp
		case user.Disabled && s == before:
			return s, xsync.DeleteOp
		}
		s.began = from
		return s, xsync.UpdateOp
	})
	return nil
}
