package http

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

type healthBody struct {
	Status    string    `json:"status"`
	Timestamp timestamp `json:"timestamp"`
	Detail    []string  `json:"detail,omitempty"`
}

// health answers 200 as long as flags are evaluated, and tells what else is out of order.
func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	status, body := http.StatusOK, healthBody{Status: "ok", Timestamp: timestamp(time.Now())}
	select {
	case <-a.queries.Live().Ready():
		if body.Detail = a.options.Health(); len(body.Detail) > 0 {
			body.Status = "degraded"
		}
	default:
		status, body.Status = http.StatusServiceUnavailable, "starting"
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = writeJSON(w, body)
}

type nameOutput struct {
	Body struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
}

type versionOutput struct {
	Body struct {
		Version     string    `json:"version"`
		BuildNumber string    `json:"build_number"`
		Status      string    `json:"status"`
		Timestamp   timestamp `json:"timestamp"`
		Environment string    `json:"environment"`
	}
}

func (a *API) addSystem() {
	register(a, access{who: anyone}, operation("GET", "/", "get-root", "System", "Name and version of the service"),
		func(context.Context, *struct{}) (*nameOutput, error) {
			out := &nameOutput{}
			out.Body.Name, out.Body.Version = "flagledger", Version
			return out, nil
		})
	register(a, access{who: anyone}, operation("GET", "/api/v1/version", "get-version", "System", "The running build"),
		func(context.Context, *struct{}) (*versionOutput, error) {
			out := &versionOutput{}
			out.Body.Version, out.Body.BuildNumber = Version, a.options.Build
			out.Body.Status, out.Body.Timestamp, out.Body.Environment = "ok", timestamp(time.Now()), a.options.Environment
			return out, nil
		})
	a.huma.OpenAPI().AddOperation(&huma.Operation{
		Method: "GET", Path: "/health", OperationID: "get-health", Tags: []string{"System"}, Summary: "Whether flags are evaluated",
		Responses: map[string]*huma.Response{
			"200": {Description: "Flags are evaluated. detail tells what else is out of order."},
			"503": {Description: "The service is starting."},
		},
	})
}
