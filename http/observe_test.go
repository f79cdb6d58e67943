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

	"flagledger/http/rest"
)

// This API has no parts: a request for its keys panics.
func TestAPanicIsAFaultOfTheService(t *testing.T) {
	var log bytes.Buffer
	a := newAPI(anonymous(100))
	a.Log = slog.New(slog.NewJSONHandler(&log, nil))
	server := httptest.NewServer(a)
	response, err := http.Get(server.URL + rest.JWKSRoute)
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
		"detail": "the request failed; search the log for its id", "instance": "urn:uuid:" + id,
	}
	for name, value := range want {
		if p[name] != value {
			t.Errorf("%s is %v, want %v", name, p[name], value)
		}
	}
	if response.StatusCode != http.StatusInternalServerError ||
		response.Header.Get("Content-Type") != "application/problem+json" ||
		id == "" ||
		len(p) != len(want) ||
		response.Header.Get("Ratelimit-Limit") == "" {
		t.Errorf("%d %v %s", response.StatusCode, response.Header, body)
	}
	if text := log.String(); !strings.Contains(text, `"request":"`+id+`"`) || !strings.Contains(text, "nil pointer") ||
		!strings.Contains(text, "jwks") {
		t.Errorf("the log does not tell the reason: %s", text)
	}
}

// Evaluations bypass the router, but must be counted under their route.
func TestAnEvaluationIsCountedByItsRoute(t *testing.T) {
	a := newAPI(anonymous(100))
	for path, status := range map[string]int{
		"POST /api/v1/flags/new-checkout/evaluate":      503,
		"POST /api/v1/flags/new%2Fcheckout/evaluate":    503,
		"POST /api/v1/flags//evaluate":                  503,
		"GET /api/v1/flags/new-checkout/evaluate":       405,
		"POST /api/v1/flags/new/checkout/evaluate":      404,
		"POST /api/v1/flags/new-checkout/evaluate/":     503,
		"POST /api/v1/flags/new-checkout/evaluate//":    404,
		"POST /api/v1/flags/new-checkout/evaluate/more": 404,
	} {
		method, target, _ := strings.Cut(path, " ")
		if w := a.from("192.0.2.1:1", method, target); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
	metrics := a.from("127.0.0.1:1", "GET", "http://localhost/metrics").Body.String()
	for _, count := range []string{
		`flagledger_http_request_duration_seconds_count{method="POST",route="/api/v1/flags/{flagKey}/evaluate",status="5xx"} 4`,
		`flagledger_http_request_duration_seconds_count{method="POST",route="unknown",status="4xx"} 3`,
	} {
		if !strings.Contains(metrics, count+"\n") {
			t.Errorf("the metrics lack %s", count)
		}
	}
	if strings.Contains(metrics, "new-checkout") {
		t.Error("the metrics have a path")
	}
}

// A handler that writes nothing, such as HEAD of a stream, returns 200.
func TestAnAnswerWithoutABodyIsNoFault(t *testing.T) {
	a := newAPI(anonymous(100))
	a.Router.Get("/nothing", func(http.ResponseWriter, *http.Request) {})
	a.from("192.0.2.1:1", "GET", "/nothing")
	metrics := a.from("127.0.0.1:1", "GET", "http://localhost/metrics").Body.String()
	if count := `{method="GET",route="/nothing",status="2xx"} 1`; !strings.Contains(metrics, count+"\n") {
		t.Errorf("the metrics lack %s", count)
	}
}

// Long paths and methods of any caller must not fill the log.
func TestTheLogOfARequestIsShort(t *testing.T) {
	a := newAPI(anonymous(100))
	var log bytes.Buffer
	a.Log = slog.New(slog.NewJSONHandler(&log, nil))
	long := strings.Repeat("a", 30_000)
	for _, call := range [][2]string{{"GET", "/api/v1/flags/" + long}, {"GET", "/" + long}, {long, "/api/v1/flags"}} {
		a.from("192.0.2.1:1", call[0], call[1])
		if log.Len() == 0 || log.Len() > 600 {
			t.Errorf("%.10s %.20s: %d bytes are logged: %.300s", call[0], call[1], log.Len(), log.String())
		}
		log.Reset()
	}
}
