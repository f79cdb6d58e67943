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

// Some proxies send every call with Transfer-Encoding: chunked, even without a body.
func TestChunkedCallsMayHaveNoBody(t *testing.T) {
	nodetest.Cases{
		"and are as those without": func(t *testing.T, me *nodetest.Client) {
			_, operations := me.Document()
			for name := range operations {
				// A stream does not end, and a token request must be a form.
				if strings.HasSuffix(name, "/stream") || strings.HasSuffix(name, "/oauth/token") {
					continue
				}
				method, path, _ := strings.Cut(name, " ")
				status := func(media string, chunked bool) int {
					caller := callerWithFlag(t, me, name)
					r := chunkedRequest(caller, method,
						filled(caller, strings.NewReplacer("{flagKey}", "k", "{key}", "k").Replace(path)), "")
					if !chunked {
						r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
					}
					if media != "" {
						r.Header.Set("Content-Type", media)
					}
					return sendRequest(t, r).StatusCode //nolint:bodyclose // sendRequest closes it
				}
				want := status("", false)
				for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
					if got := status(media, true); got != want || got == http.StatusUnsupportedMediaType {
						t.Errorf("%s of the type %q: %d, want %d", name, media, got, want)
					}
				}
			}
		},
		"and a body that comes is read whole": func(t *testing.T, me *nodetest.Client) {
			r := chunkedRequest(me, "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`)
			a := sendRequest(t, r) //nolint:bodyclose // sendRequest closes it
			if a.StatusCode != http.StatusUnsupportedMediaType {
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

// callerWithFlag returns a caller in a tenant with the flag k: a new one if the operation ends something that others
// need, or has a limit.
func callerWithFlag(t *testing.T, me *nodetest.Client, operation string) *nodetest.Client {
	t.Helper()
	caller := *me
	if strings.HasSuffix(operation, "/logout") || strings.HasSuffix(operation, "/resend-verification") {
		caller = *me.Service.SignUp(nodetest.Address())
	}
	if strings.HasPrefix(operation, "DELETE ") || strings.Contains(operation, "/sandbox/cleanup/") {
		caller = *caller.NewTenant("no body")
	}
	if caller.Call("GET", nodetest.FlagPath("k"), nil).Status == http.StatusNotFound {
		caller.CreateFlag("k", nil)
	}
	return &caller
}

// chunkedRequest creates a request without a content length.
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
	nodetest.Cases{
		"by every route that takes one": func(t *testing.T, me *nodetest.Client) {
			var body bytes.Buffer
			w := gzip.NewWriter(&body)
			_, _ = io.WriteString(w, `{"key":"k","type":"boolean"}`)
			_ = w.Close()
			_, operations := me.Document()
			for name, operation := range operations {
				if operation["requestBody"] == nil {
					continue
				}
				method, path, _ := strings.Cut(name, " ")
				a := me.Call(method, filled(me, path), body.Bytes(), "Content-Encoding", "gzip").Want(415)
				if a.Header.Get("Accept-Encoding") != "identity" || !strings.Contains(string(a.Body), "compressed") {
					t.Errorf("%s: %v %s", name, a.Header, a.Body)
				}
			}
			me.Lenient().Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`, "Content-Encoding", "identity").Want(201)
		},
	}.Run(t)
}
