package commands

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
	// Send hands a mail over to whoever delivers it, which may take half a minute; its errors name no address.
	// ErrRecipientRefused and ErrRecipientDeferred say that the recipient seems to be the reason: with any other error,
	// mails to others fail too.
	Send(ctx context.Context, m Mail) error
}

var (
	// ErrRecipientRefused says that there is no such recipient, or that their mailbox takes no mail: it is of no use to
	// try again.
	ErrRecipientRefused = errors.New("the recipient is refused for good")
	// ErrRecipientDeferred says that mails to this recipient are not taken for now, while those to others may be. Errors
	// of jobs are stored, and jobs.Client.Counts finds this one by its text, which therefore stays as it is.
	ErrRecipientDeferred = errors.New("the recipient's mails are not taken for now")
)
