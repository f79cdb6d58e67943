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
	// Send hands a mail over to whoever delivers it. It may take half a minute: nobody should wait for it. Its errors name no address. ErrMailRefused and
	// ErrMailDeferred say that the recipient is the reason; with any other, mails to others fail too.
	Send(ctx context.Context, m Mail) error
}

var (
	// ErrMailRefused says that a mail to this recipient is refused for good.
	ErrMailRefused = errors.New("the mail is refused for good")
	// ErrMailDeferred says that mails to this recipient are not taken for now, while those to others may be.
	ErrMailDeferred = errors.New("the recipient's mails are not taken for now")
)
