package http

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"flagledger/commands"
)

// limitAttempts calls try with a secret for an account, within the network's limit of wrong attempts. Past the
// account's limit it waits some seconds first. It treats unknown accounts the same.
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

// personAttemptKey returns the key by which an account's wrong passwords are counted, in any spelling of its address.
func personAttemptKey(email string) string {
	return "person " + cmp.Or(commands.EmailKey(email), email)
}
