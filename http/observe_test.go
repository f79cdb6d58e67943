package http

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The interface over nothing has no keys to show: to ask for them panics.
func TestAPanicIsAFaultOfTheService(t *testing.T) {
	var log bytes.Buffer
	a := newAPI(anonymous(100))
	a.options.Log = slog.New(slog.NewJSONHandler(&log, nil))
	server := httptest.NewServer(a)
	response, err := http.Get(server.URL + jwksRoute)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	server.Close() // the log is complete
	var p map[string]any
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	id := response.Header.Get("X-Request-ID")
	want := map[string]any{
		"type": "/problems/internal", "title": "Internal Server Error", "status": 500.0,
		"detail": "the request could not be carried out; its id finds the reason in the log", "instance": "urn:uuid:" + id,
	}
	for name, value := range want {
		if p[name] != value {
			t.Errorf("%s is %v, want %v", name, p[name], value)
		}
	}
	if response.StatusCode != http.StatusInternalServerError || response.Header.Get("Content-Type") != "application/problem+json" || id == "" || len(p) != len(want) || response.Header.Get("Ratelimit-Limit") == "" {
		t.Errorf("%d %v %s", response.StatusCode, response.Header, body)
	}
	if text := log.String(); !strings.Contains(text, `"request":"`+id+`"`) || !strings.Contains(text, "nil pointer") || !strings.Contains(text, "jwks") {
		t.Errorf("the log does not tell the reason: %s", text)
	}
}
