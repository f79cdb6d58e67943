package nodetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Reply is what came of a call that is allowed to fail.
type Reply struct {
	Status int // 0 where no answer came
	Header http.Header
	Body   string
	Took   time.Duration
	Err    error
}

// String is for messages of tests.
func (r Reply) String() string {
	return fmt.Sprintf("%d after %v: %s%v", r.Status, r.Took, r.Body, r.Err)
}

// callers keep their connections: a test that calls without pause would run out of ports otherwise.
var callers = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// Attempt makes a call that may fail. headers are pairs of name and value. It may be used from any goroutine.
func (c *Client) Attempt(method, path, body string, headers ...string) (r Reply) {
	began := time.Now()
	defer func() { r.Took = time.Since(began) }()
	request, err := http.NewRequest(method, c.Service.URL+path, strings.NewReader(body))
	if err != nil {
		return Reply{Err: err}
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("X-Tenant-ID", c.Tenant)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := callers.Do(request)
	if err != nil {
		return Reply{Err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Reply{Err: err}
	}
	return Reply{Status: response.StatusCode, Header: response.Header, Body: string(bytes.TrimSpace(text))}
}
