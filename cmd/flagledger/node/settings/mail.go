package settings

import (
	"fmt"

	"flagledger/commands/mail"
)

// Mail configures mails.
type Mail struct {
	URL string `env:"FLAGLEDGER_SMTP_URL"`
}

func (s Mail) check() error {
	if s.URL == "" {
		return nil
	}
	if _, err := mail.Open(s.URL); err != nil {
		return fmt.Errorf(
			"FLAGLEDGER_SMTP_URL must be a URL such as smtp://user:password@host:587?from=flags@example.com: %w", err,
		)
	}
	return nil
}
