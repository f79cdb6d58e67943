package http

import "context"

// limitMails calls mail, which mails an address that the client names, within a daily limit of the client's network.
// Refused calls do not count.
func (a *API) limitMails(ctx context.Context, mail func() error) error {
	req := requestOf(ctx)
	left, giveBack := a.limiter.CountMailRequest(req.received)
	if left.Exceeded {
		return tooManyRequests(left,
			"the daily limit of sign-ups, sandbox links and password mails from the client's network is reached")
	}
	err := mail()
	if isRefusal(err) {
		giveBack()
	}
	return err
}
