package node

import (
	"fmt"
	"log/slog"

	"flagledger/commands"
	"flagledger/commands/mail"
)

// MailSettings configure mails.
type MailSettings struct {
	URL string `env:"FLAGLEDGER_SMTP_URL"`
}

// openMailer returns a mailer for the configured server, or one that logs.
func (c Config) openMailer(log *slog.Logger) (commands.Mailer, error) {
	if c.Mail.URL != "" {
		return mail.Open(c.Mail.URL)
	}
	if c.Environment == "production" {
		log.Warn("mails are not sent: there is no FLAGLEDGER_SMTP_URL; each is logged without its link")
	}
	return mail.ToLog(log, c.Environment == "development"), nil
}

func (s MailSettings) check() error {
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
