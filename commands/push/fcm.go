// Package push pushes notifications to devices through Firebase Cloud Messaging, or to the log.
package push

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	firebase "firebase.google.com/go/v4"
	"firebase.google.com/go/v4/errorutils"
	"firebase.google.com/go/v4/messaging"
	"google.golang.org/api/option"

	"flagledger/commands/notify"
)

const (
	maxTokens  = 500 // FCM's limit for a batch
	maxPayload = 3500
	maxBody    = 1000 // bytes
)

// FCM pushes through Firebase Cloud Messaging.
type FCM struct{ client *messaging.Client }

var _ notify.Pusher = (*FCM)(nil)

// Open returns the FCM of a Firebase project. It uses the machine's credentials unless the options have others.
func Open(ctx context.Context, projectID string, options ...option.ClientOption) (*FCM, error) {
	app, err := firebase.NewApp(ctx, &firebase.Config{ProjectID: projectID}, options...)
	if err != nil {
		return nil, err
	}
	client, err := app.Messaging(ctx)
	if err != nil {
		return nil, err
	}
	return &FCM{client}, nil
}

// Push implements notify.Pusher.
func (f *FCM) Push(ctx context.Context, n notify.Notification, tokens []string) []error {
	outcomes := make([]error, 0, len(tokens))
	for batch := range slices.Chunk(tokens, maxTokens) {
		outcomes = append(outcomes, f.pushBatch(ctx, n, batch)...)
	}
	return outcomes
}

func (f *FCM) pushBatch(ctx context.Context, n notify.Notification, tokens []string) []error {
	outcomes := make([]error, len(tokens))
	batch, err := f.client.SendEachForMulticast(ctx, message(n, tokens))
	for i := range outcomes {
		switch {
		case err != nil:
			outcomes[i] = fmt.Errorf("%w: FCM's client refuses it", notify.ErrPushRefused)
		case !batch.Responses[i].Success:
			outcomes[i] = outcome(ctx, batch.Responses[i].Error)
		case batch.Responses[i].MessageID == "":
			outcomes[i] = fmt.Errorf("the answer of FCM cannot be read")
		}
	}
	return outcomes
}

// message returns a notification for FCM, within its limit of 4 KiB. If a push is repeated after a lost answer, the
// tag makes devices show it once.
func message(n notify.Notification, tokens []string) *messaging.MulticastMessage {
	shown := &messaging.Notification{Title: n.Title, Body: shortened(n.Body)}
	data := map[string]string{}
	for name, value := range map[string]string{"type": n.Type, "actionType": n.ActionType, "referenceId": n.ReferenceID} {
		if value != "" {
			data[name] = value
		}
	}
	maps.Copy(data, n.Data)
	if size := len(shown.Title) + len(shown.Body) + sizeOf(data); size > maxPayload {
		data = map[string]string{} // the device loads the rest by the id
	}
	data["notificationId"] = n.ID
	return &messaging.MulticastMessage{
		Tokens: tokens, Notification: shown, Data: data,
		Android: &messaging.AndroidConfig{Notification: &messaging.AndroidNotification{Tag: n.ID}},
		APNS:    &messaging.APNSConfig{Headers: map[string]string{"apns-collapse-id": n.ID}},
		Webpush: &messaging.WebpushConfig{Notification: &messaging.WebpushNotification{Tag: n.ID}},
	}
}

func sizeOf(data map[string]string) (n int) {
	for name, value := range data {
		n += len(name) + len(value)
	}
	return n
}

// shortened cuts off a text at a length.
func shortened(text string) string {
	if len(text) <= maxBody {
		return text
	}
	cut := maxBody
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// outcome returns an error without FCM's answer, which may hold the token.
func outcome(ctx context.Context, err error) error {
	status := 0
	if response := errorutils.HTTPResponse(err); response != nil {
		status = response.StatusCode
	}
	switch {
	case messaging.IsUnregistered(err):
		return notify.ErrDeviceGone
	case messaging.IsInvalidArgument(err) || messaging.IsSenderIDMismatch(err):
		return fmt.Errorf("%w: FCM answers %d", notify.ErrPushRefused, status)
	case status != 0:
		return fmt.Errorf("FCM answers %d", status)
	case ctx.Err() != nil:
		return fmt.Errorf("FCM does not answer: %w", ctx.Err())
	default:
		return fmt.Errorf("FCM cannot be reached, or its answer cannot be read")
	}
}
