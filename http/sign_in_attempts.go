package http

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"flagledger/commands"
)

// limitAttempts tries a secret for an account, unless too many wrong ones were tried for it lately from the same
// network. After very many from everywhere it first waits for a few seconds. It makes no difference whether the account
// exists.
func (a *API) limitAttempts(ctx context.Context, account string, try func() error) error {
	attempt, left, err := a.limiter.CountAttempt(ctx, account, a.limiter.Network(requestOf(ctx).received))
	if err != nil {
		return err
	}
	if left.Exceeded {
		return tooManyRequests(left, "")
	}
	err = try()
	refused, _ := errors.AsType[*problem](err)
	switch {
	case err == nil:
		attempt.Succeed()
	case commands.KindOf(err) != commands.Unauthenticated && (refused == nil || refused.Status != http.StatusUnauthorized):
		attempt.Forgive()
	}
	return err
}

// attemptedPerson is what wrong passwords are counted for: the account of an address, however it is spelt.
func attemptedPerson(email string) string {
	return "person " + cmp.Or(commands.EmailKey(email), email)
}
