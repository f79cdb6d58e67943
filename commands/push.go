package commands

import (
	"context"
	"errors"
)

// Pusher pushes notifications to devices.
type Pusher interface {
	// Push pushes a notification to the devices with some tokens, which may take some ten seconds. It returns an error for
	// each token in their order, nil for one that was taken. The errors hold neither tokens nor texts. After any but
	// ErrDeviceGone and ErrPushRefused the push may be tried again.
	Push(ctx context.Context, n Notification, tokens []string) []error
}

var (
	// ErrDeviceGone says that a token stands for no device any more.
	ErrDeviceGone = errors.New("the device is not registered any more")
	// ErrPushRefused says that a notification will never be taken for a device.
	ErrPushRefused = errors.New("the push is refused for good")
)
