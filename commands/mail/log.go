package mail

import (
	"context"
	"log/slog"

	"flagledger/commands/notify"
)

// Log writes mails to the log instead of sending them.
type Log struct {
	log   *slog.Logger
	whole bool
}

var _ notify.Mailer = Log{}

// ToLog returns a mailer that logs. Whole mails contain addresses and secrets: use them only in development.
func ToLog(log *slog.Logger, whole bool) Log { return Log{log, whole} }

// Send implements notify.Mailer.
func (l Log) Send(ctx context.Context, m notify.Mail) error {
	if l.whole {
		l.log.InfoContext(ctx, "a mail", "to", m.To, "subject", m.Subject, "text", m.Text)
	} else {
		l.log.WarnContext(ctx, "a mail was not sent: there is no FLAGLEDGER_SMTP_URL", "subject", m.Subject)
	}
	return nil
}
