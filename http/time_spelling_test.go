package http_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
)

// RFC 3339 allows t and z in lower case, and a leap second at the end of a month in UTC. Every time of a caller accepts
// these spellings, and no others.
func TestTimesAreTakenInEachSpelling(t *testing.T) {
	t.Parallel()
	s := shopOn(t, nodetest.Database(t), paymenttest.New(t, time.Now), func(c *settings.Config) {
		c.SuperUsers = []string{"root@example.com"}
	})
	root, owner := s.SignUp("root@example.com"), s.SignUp("owner@example.com")
	whole, operations := root.Document()
	for _, p := range parameters(whole, operations) {
		// reports of usage come from machines alone, and have a test of their own
		if p.schema["format"] != "date-time" || p.operation == "POST /api/v1/usage" {
			continue
		}
		t.Run(p.operation+" "+p.name, func(t *testing.T) {
			row := rowOf(t, p.operation)
			row.name, row.headers = p.operation, strings.ReplaceAll(row.headers, "Idempotency-Key", "")
			w := newWorld(t, s, row, root, owner)
			w.filled(w.path) // the things in the path exist before the times
			send := func(text string) *nodetest.Answer {
				t.Helper()
				call := *w
				if p.in == "query" {
					call.path += "?" + p.name + "=" + url.QueryEscape(text)
				} else {
					call.body = bodyWith(t, row.body, strings.TrimPrefix(p.name, "."), text)
				}
				if call.method == "GET" {
					call.body = ""
				}
				return call.call(call.me.Lenient(), call.headersBut(""))
			}
			at := time.Now()
			if strings.HasSuffix(p.name, "expiresAt") { // which is in the future
				at = at.AddDate(1, 0, 0)
			}
			now := at.UTC().Format(events.RecordedFormat)
			usual, lower := send(now).Want(row.status), send(strings.ToLower(now)).Want(row.status)
			// a call is an access itself
			nodetest.Same(t, "the answer to "+strings.ToLower(now), accessed.ReplaceAllString(withoutDrawn(lower), ""),
				accessed.ReplaceAllString(withoutDrawn(usual), ""))
			nodetest.Same(t, "what a leap second is answered", send("2016-12-31t23:59:60z").Status,
				send("2017-01-01T00:00:00Z").Status)
			for _, wrong := range []string{"yesterday", "2026-03-14T15:09:26,5Z", "2026-03-14 15:09:26Z", "2026-03-14T5:09:26Z", "2026-03-14T15:09:60Z"} {
				send(wrong).Refused(422, strings.TrimPrefix(p.name, "."))
			}
		})
	}
}

// drawn matches values that differ with each call.
var drawn = regexp.MustCompile(`"(correlationId|updated_at|id|key|signingSecret|createdAt)":"[^"]*"`)

func withoutDrawn(a *nodetest.Answer) string { return drawn.ReplaceAllString(string(a.Body), "") }

// bodyWith returns a body with one more member, and without a version, because a time replaces it.
func bodyWith(t *testing.T, body, member string, value any) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "version")
	members[member] = value
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
