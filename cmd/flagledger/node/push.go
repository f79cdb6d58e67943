package node

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/api/option"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/push"
)

// openPusher pushes through FCM of the configured Firebase project, or to the log. Firebase's emulator has no FCM.
func openPusher(ctx context.Context, c settings.Config, log *slog.Logger) (commands.Pusher, error) {
	if c.PushEndpoint != "" {
		return push.Open(ctx, "test", option.WithEndpoint(c.PushEndpoint), option.WithoutAuthentication())
	}
	if c.Firebase.ProjectID == "" || c.Firebase.EmulatorHost != "" {
		return push.ToLog(log), nil
	}
	p, err := push.Open(ctx, c.Firebase.ProjectID)
	if err != nil {
		return nil, fmt.Errorf("FIREBASE_PROJECT_ID needs GOOGLE_APPLICATION_CREDENTIALS: %w", err)
	}
	return p, nil
}
