package http

import "context"

// limitMails does what mails an address that the client names, unless the client's network has caused too many such
// mails today. What is refused does not count.
func (a *API) limitMails(ctx context.Context, mail func() error) error {
	req := requestOf(ctx)
	left, giveBack := a.limiter.CountMailRequest(req.received)
	if left.Exceeded {
		return tooManyRequests(left,
			"too many mails to addresses of the client's choice were asked for from its network within a day")
	}
	err := mail()
	if isRefusal(err) {
		giveBack()
	}
	return err
}
