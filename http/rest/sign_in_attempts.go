package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"flagledger/commands"
)

// LimitAttempts calls try with a secret for an account, within the network's limit of wrong attempts. Past the
// account's limit it waits some seconds first. It treats unknown accounts the same.
func (a *Core) LimitAttempts(ctx context.Context, account string, try func() error) error {
	attempt, left, err := a.Limiter.CountAttempt(ctx, account, a.Limiter.Network(RequestOf(ctx).received))
	if err != nil {
		return err
	}
	if left.Exceeded {
		return TooManyRequests(left, "")
	}
	err = try()
	refused, _ := errors.AsType[*Problem](err)
	switch {
	case err == nil:
		attempt.Succeed()
	case commands.KindOf(err) != commands.Unauthenticated && (refused == nil || refused.Status != http.StatusUnauthorized):
		attempt.Forgive()
	}
	return err
}

// PersonAttemptKey returns the key by which an account's wrong passwords are counted, in any spelling of its address.
func PersonAttemptKey(email string) string {
	return "person " + cmp.Or(commands.EmailKey(email), email)
}
