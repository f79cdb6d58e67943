package http_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// Some proxies send every call with Transfer-Encoding: chunked, whether it has a body or not.
func TestChunkedCallsMayHaveNoBody(t *testing.T) {
	nodetest.RunOnce(t)
	nodetest.Cases{
		"and are as those without": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, c := range []struct {
				method, path string
				status       int
			}{
				{"POST", nodetest.FlagPath("k", "/enable"), 200}, {"POST", nodetest.FlagPath("k", "/disable"), 200},
				{"GET", nodetest.FlagPath("k"), 200}, {"GET", "/health", 200}, {"PATCH", "/api/v1/notifications/read-all", 200},
				{"POST", "/api/v1/flags", 400}, {"POST", nodetest.FlagPath("none", "/evaluate"), 400},
				{"POST", "/ofrep/v1/evaluate/flags", 400}, {"POST", "/api/v1/auth/login", 400},
			} {
				for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
					r := chunkedRequest(me, c.method, c.path, "")
					if media != "" {
						r.Header.Set("Content-Type", media)
					}
					if a := sendRequest(t, r); a.StatusCode != c.status { //nolint:bodyclose // sendRequest closes it
						t.Errorf("%s %s of the type %q: %d, want %d", c.method, c.path, media, a.StatusCode, c.status)
					}
				}
			}
			if a := sendRequest(t, chunkedRequest(me, "DELETE", nodetest.FlagPath("k"), "")); a.StatusCode != http.StatusNoContent { //nolint:bodyclose // sendRequest closes it
				t.Errorf("DELETE: %d", a.StatusCode)
			}
		},
		"and a body that comes is read whole": func(t *testing.T, me *nodetest.Client) {
			r := chunkedRequest(me, "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`)
			if a := sendRequest(t, r); a.StatusCode != http.StatusUnsupportedMediaType { //nolint:bodyclose // sendRequest closes it
				t.Errorf("without a type it is %d", a.StatusCode)
			}
			r = chunkedRequest(me, "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`)
			r.Header.Set("Content-Type", "application/json")
			if a := sendRequest(t, r); a.StatusCode != http.StatusCreated { //nolint:bodyclose // sendRequest closes it
				t.Errorf("with its type it is %d", a.StatusCode)
			}
		},
	}.Run(t)
}

// chunkedRequest makes a request that does not say how long its body is.
func chunkedRequest(c *nodetest.Client, method, path, body string) *http.Request {
	c.Service.T.Helper()
	sent := io.NopCloser(strings.NewReader(body))
	r, err := http.NewRequestWithContext(c.Service.T.Context(), method, c.Service.URL+path, sent)
	if err != nil {
		c.Service.T.Fatal(err)
	}
	r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set("X-Tenant-ID", c.Tenant)
	return r
}

func sendRequest(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer
}

func TestCompressedBodiesAreRefused(t *testing.T) {
	nodetest.RunOnce(t)
	nodetest.Cases{
		"by every route that takes one": func(t *testing.T, me *nodetest.Client) {
			var body bytes.Buffer
			w := gzip.NewWriter(&body)
			_, _ = io.WriteString(w, `{"key":"k","type":"boolean"}`)
			_ = w.Close()
			for _, path := range []string{
				"/api/v1/flags", "/api/v1/flags/k/evaluate", "/api/v1/flags/evaluate", "/ofrep/v1/evaluate/flags",
				"/api/v1/oauth/token", "/api/v1/billing/webhook", "/auth/signin",
			} {
				a := me.Call("POST", path, body.Bytes(), "Content-Encoding", "gzip").Want(415)
				if a.Header.Get("Accept-Encoding") != "identity" || !strings.Contains(string(a.Body), "compressed") {
					t.Errorf("%s: %v %s", path, a.Header, a.Body)
				}
			}
			me.Lenient().Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`, "Content-Encoding", "identity").Want(201)
		},
	}.Run(t)
}
