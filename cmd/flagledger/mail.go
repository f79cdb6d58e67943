package main

import (
	"fmt"

	"flagledger/commands/mail"
)

// mailSettings say how mails are sent.
type mailSettings struct {
	URL string `env:"FLAGLEDGER_SMTP_URL"`
}

func (s mailSettings) check() error {
	if s.URL == "" {
		return nil
	}
	if _, err := mail.Open(s.URL); err != nil {
		return fmt.Errorf("FLAGLEDGER_SMTP_URL must be a URL such as smtp://user:password@host:587?from=flags@example.com: %w", err)
	}
	return nil
}
