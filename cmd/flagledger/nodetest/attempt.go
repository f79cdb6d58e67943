package nodetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Reply is the outcome of a call that may fail.
type Reply struct {
	Status int // 0 without a response
	Header http.Header
	Body   string
	Took   time.Duration
	Err    error
}

// String describes the reply in test messages.
func (r Reply) String() string {
	return fmt.Sprintf("%d after %v: %s%v", r.Status, r.Took, r.Body, r.Err)
}

// callers reuses connections. A test that calls in a tight loop would otherwise run out of ports.
var callers = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// Attempt makes a call that may fail. headers are pairs of name and value. It is safe for concurrent use.
func (c *Client) Attempt(method, path, body string, headers ...string) (r Reply) {
	began := time.Now()
	defer func() { r.Took = time.Since(began) }()
	request, err := http.NewRequest(method, c.Service.URL+path, strings.NewReader(body))
	if err != nil {
		return Reply{Err: err}
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Tenant != "" {
		request.Header.Set("X-Tenant-ID", c.Tenant)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Host = request.Header.Get("Host") // that of the URL if empty
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
