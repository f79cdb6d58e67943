package rest

import (
	"context"
	"errors"

	"flagledger/commands"
)

// LimitMails calls mail, which mails an address that the client names, within a daily limit of the client's network.
// Refused calls do not count.
func (a *Core) LimitMails(ctx context.Context, mail func() error) error {
	req := RequestOf(ctx)
	left, giveBack := a.Limiter.CountMailRequest(req.received)
	if left.Exceeded {
		return TooManyRequests(left,
			"the daily limit of sign-ups, sandbox links and password mails from the client's network is reached")
	}
	err := mail()
	if IsRefusal(err) {
		giveBack()
	}
	return err
}

// IsRefusal reports whether an error guarantees that the call changed nothing.
func IsRefusal(err error) bool {
	if _, refused := errors.AsType[*Problem](err); refused {
		return true
	}
	kind := commands.KindOf(err)
	return err != nil && kind != commands.Internal && kind != commands.Unavailable
}
