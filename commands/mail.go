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
	// Send hands a mail over to whoever delivers it. It may take half a minute: nobody should wait for it. Its errors name no address; ErrMailRefused
	// says that there is no use in sending it again.
	Send(ctx context.Context, m Mail) error
}

// ErrMailRefused says that a mail was refused for good.
var ErrMailRefused = errors.New("the mail is refused for good")
