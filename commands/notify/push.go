package notify

import (
	"context"
	"errors"
)

// Pusher pushes notifications to devices.
type Pusher interface {
	// Push pushes a notification to devices, which may take some ten seconds. It returns an error or nil for each
	// token. Errors contain neither tokens nor texts; all but ErrDeviceGone and ErrPushRefused can be retried.
	Push(ctx context.Context, n Notification, tokens []string) []error
}

var (
	// ErrDeviceGone reports that a token's device is gone.
	ErrDeviceGone = errors.New("the device is not registered any more")
	// ErrPushRefused reports that a push to a device can never succeed.
	ErrPushRefused = errors.New("the push is refused for good")
)
