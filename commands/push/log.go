package push

import (
	"context"
	"log/slog"

	"flagledger/commands/notify"
)

// Log logs pushes without their texts instead of sending them.
type Log struct{ log *slog.Logger }

var _ notify.Pusher = Log{}

// ToLog returns a pusher that logs.
func ToLog(log *slog.Logger) Log { return Log{log} }

// Push implements notify.Pusher.
func (l Log) Push(ctx context.Context, n notify.Notification, tokens []string) []error {
	l.log.InfoContext(ctx, "a notification was not pushed: there is no FIREBASE_PROJECT_ID", "notification", n.ID,
		"devices", len(tokens))
	return make([]error, len(tokens))
}
