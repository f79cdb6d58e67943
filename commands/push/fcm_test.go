package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/api/option"

	"flagledger/commands/notify"
	"flagledger/commands/push/pushtest"
)

func open(t *testing.T, s *pushtest.Server) *FCM {
	t.Helper()
	f, err := Open(t.Context(), "test", option.WithEndpoint(s.Endpoint), option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var hello = notify.Notification{
	ID:          "n1",
	Title:       "Hello",
	Body:        "You",
	Type:        "greeting",
	ActionType:  "open",
	ReferenceID: "r1",
	Data:        map[string]string{"a": "b", "type": "own"},
}

func TestWhatADeviceGets(t *testing.T) {
	s := pushtest.New(t)
	if err := open(t, s).Push(t.Context(), hello, []string{"phone"})[0]; err != nil {
		t.Fatal(err)
	}
	m := s.Taken()[0]
	if m.Token != "phone" || m.Notification.Title != "Hello" || m.Notification.Body != "You" {
		t.Errorf("got %+v", m)
	}
	want := map[string]string{"a": "b", "type": "own", "actionType": "open", "referenceId": "r1", "notificationId": "n1"}
	if fmt.Sprint(m.Data) != fmt.Sprint(want) {
		t.Errorf("the data are %v", m.Data)
	}
	if m.Android.Notification.Tag != "n1" || m.APNS.Headers["apns-collapse-id"] != "n1" ||
		m.Webpush.Notification.Tag != "n1" {
		t.Errorf("a second push of it would be shown too: %+v", m)
	}
}

func TestWhatIsTooLargeIsLeftOut(t *testing.T) {
	s := pushtest.New(t)
	large := hello
	large.Body, large.Data = "a"+strings.Repeat("ü", 1999), map[string]string{"x": strings.Repeat("y", 4000)}
	if err := open(t, s).Push(t.Context(), large, []string{"phone"})[0]; err != nil {
		t.Fatal(err)
	}
	m := s.Taken()[0]
	if len(m.Data) != 1 || m.Data["notificationId"] != "n1" || len(m.Notification.Body) > maxBody+3 ||
		!utf8.ValidString(m.Notification.Body) ||
		!strings.HasSuffix(m.Notification.Body, "ü…") {
		t.Errorf("got %+v", m)
	}
}

// Every token has its own outcome, also in more than one batch.
func TestManyDevices(t *testing.T) {
	s := pushtest.New(t)
	s.Answer(func(_ int, m pushtest.Message) pushtest.Answer {
		if m.Token == "t7" || m.Token == "t500" {
			return pushtest.Answer{Status: 404, Code: "UNREGISTERED"}
		}
		return pushtest.Answer{}
	})
	var tokens []string
	for i := range maxTokens + 1 {
		tokens = append(tokens, fmt.Sprint("t", i))
	}
	outcomes := open(t, s).Push(t.Context(), hello, tokens)
	if len(outcomes) != len(tokens) || len(s.Taken()) != len(tokens)-2 {
		t.Fatalf("%d outcomes, %d taken", len(outcomes), len(s.Taken()))
	}
	for i, err := range outcomes {
		if gone := i == 7 || i == 500; errors.Is(err, notify.ErrDeviceGone) != gone || err == nil == gone {
			t.Errorf("%s: %v", tokens[i], err)
		}
	}
}

// Only FCM's errors about a device or a message are final.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		answer pushtest.Answer
		want   error // nil if it is retried
	}{
		"unregistered":      {pushtest.Answer{Status: 404, Code: "UNREGISTERED"}, notify.ErrDeviceGone},
		"no such project":   {pushtest.Answer{Status: 404, Code: "NOT_FOUND"}, nil},
		"invalid":           {pushtest.Answer{Status: 400, Code: "INVALID_ARGUMENT"}, notify.ErrPushRefused},
		"of another sender": {pushtest.Answer{Status: 403, Code: "SENDER_ID_MISMATCH"}, notify.ErrPushRefused},
		"no credentials":    {pushtest.Answer{Status: 401, Code: "UNAUTHENTICATED"}, nil},
		"too many":          {pushtest.Answer{Status: 429, Code: "QUOTA_EXCEEDED"}, nil},
		"a fault":           {pushtest.Answer{Status: 500, Code: "INTERNAL"}, nil},
		"garbage":           {pushtest.Answer{Body: "<html>phone"}, nil},
		"an empty answer":   {pushtest.Answer{Body: "{}"}, nil},
		"refused garbage":   {pushtest.Answer{Status: 502, Body: "\x00phone"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pushtest.New(t)
			s.Answer(func(int, pushtest.Message) pushtest.Answer { return c.answer })
			err := open(t, s).Push(t.Context(), hello, []string{"phone"})[0]
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, final := range []error{notify.ErrDeviceGone, notify.ErrPushRefused} {
				if errors.Is(err, final) != (final == c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			}
			if strings.Contains(err.Error(), "phone") || strings.Contains(err.Error(), "Hello") {
				t.Errorf("the error tells of the device or the words: %v", err)
			}
			if n := s.Tried("phone"); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

func TestFCMThatDoesNotAnswer(t *testing.T) {
	s := pushtest.New(t)
	s.Answer(func(int, pushtest.Message) pushtest.Answer { return pushtest.Answer{Hang: make(chan struct{})} })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := open(t, s).Push(ctx, hello, []string{"phone"})[0]
	if err == nil || errors.Is(err, notify.ErrDeviceGone) || errors.Is(err, notify.ErrPushRefused) {
		t.Errorf("got %v", err)
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	if errs := ToLog(
		slog.New(slog.NewTextHandler(&out, nil)),
	).Push(t.Context(), hello, []string{"phone"}); len(errs) != 1 ||
		errs[0] != nil {
		t.Errorf("got %v", errs)
	}
	if text := out.String(); !strings.Contains(text, "n1") || strings.Contains(text, "phone") ||
		strings.Contains(text, "Hello") ||
		strings.Contains(text, "You") {
		t.Errorf("the log says %s", text)
	}
}
