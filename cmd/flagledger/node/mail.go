package node

import (
	"log/slog"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/mail"
)

// openMailer returns a mailer for the configured server, or one that logs.
func openMailer(c settings.Config, log *slog.Logger) (commands.Mailer, error) {
	if c.Mail.URL != "" {
		return mail.Open(c.Mail.URL)
	}
	if c.Environment == "production" {
		log.Warn("mails are not sent: there is no FLAGLEDGER_SMTP_URL; each is logged without its link")
	}
	return mail.ToLog(log, c.Environment == "development"), nil
}
