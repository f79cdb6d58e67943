package http_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// rawCall sends a call with headers and the given part of a body, on its own connection.
func rawCall(c *nodetest.Client, call, headers, body string) *bufio.Reader {
	t := c.Service.T
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.Service.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	text := fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s", call, headers)
	if c.Token != "" {
		text += fmt.Sprintf("Authorization: Bearer %s\r\nX-Tenant-ID: %s\r\n", c.Token, c.Tenant)
	}
	if _, err := io.WriteString(conn, text+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(conn)
}

// rawAnswer returns the status and the body of the response to a rawCall.
func rawAnswer(t testing.TB, from *bufio.Reader) (status int, body string) {
	t.Helper()
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

const chunked = "Transfer-Encoding: chunked\r\n"

func inChunks(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

// A body takes a slot for large bodies once more than 32 KiB have arrived.
func TestWhoSendsSlowlyHoldsNoPlace(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me, nobody := s.SignUp(nodetest.Address()), s.Anonymous()
	me.CreateFlag("k", nil)
	for range 8 { // all slots
		rawCall(me, "POST /api/v1/flags", "Content-Length: 100000\r\n", "{")
		rawCall(nobody, "POST /api/v1/auth/login", chunked, "1\r\n{\r\n")
		rawCall(me, "POST "+nodetest.FlagPath("k", "/evaluate"), chunked, "")
	}
	me.CreateFlag("large", map[string]any{"type": "string", "defaultValue": strings.Repeat("v", 40_000)})
	for call, c := range map[string]struct {
		who  *nodetest.Client
		body string
	}{
		"POST /auth/signin":                               {nobody, `{"email":"` + me.Email + `","password":"` + nodetest.Password + `"}`},
		"POST " + nodetest.FlagPath("k", "/evaluate"):     {me, `{}`},
		"POST " + nodetest.FlagPath("large", "/evaluate"): {me, `{"attributes":{"a":"` + strings.Repeat("v", 40_000) + `"}}`},
	} {
		if status, text := rawAnswer(t, rawCall(c.who, call, chunked, inChunks(c.body))); status != http.StatusOK {
			t.Errorf("%s: %d %s", call, status, text)
		}
	}
}

// It lasts as long as a slow body may, several seconds.
func TestALargeBodyThatDoesNotComeIsEnded(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	for _, c := range [][2]string{
		{"Content-Length: 100000\r\n", strings.Repeat(" ", 40_000)},
		{chunked, "fff0\r\n" + strings.Repeat(" ", 40_000)},
	} {
		from := rawCall(me, "POST /api/v1/flags", c[0], c[1])
		if status, text := rawAnswer(t, from); status != http.StatusBadRequest || !strings.Contains(text, "too slowly") {
			t.Errorf("%s: %d %s", c[0], status, text)
		}
	}
}
