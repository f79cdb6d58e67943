package notify

import (
	"context"
	"errors"
)

// Mail is a message to one person. Its text may hold a link that is a secret.
type Mail struct {
	To      string // an address
	Subject string
	Text    string
}

// Mailer sends mails.
type Mailer interface {
	// Send hands a mail to the server, which may take half a minute. Errors contain no address. ErrRecipientRefused
	// and ErrRecipientDeferred mean that the recipient is probably the reason: after any other error, mails to others
	// fail too.
	Send(ctx context.Context, m Mail) error
}

var (
	// ErrRecipientRefused reports that the recipient does not exist or accepts no mail: retrying is useless.
	ErrRecipientRefused = errors.New("the recipient is refused for good")
	// ErrRecipientDeferred reports that mails to this recipient are not accepted for now, while others may be. Errors
	// of jobs are stored, and jobs.Client.Counts finds this one by its text, so it never changes.
	ErrRecipientDeferred = errors.New("the recipient's mails are not taken for now")
)
