package http

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/http/rest"
	"flagledger/http/strictjson"
)

type healthBody struct {
	Status    string         `json:"status" enum:"ok,degraded,starting,stopping" example:"degraded"`
	Timestamp rest.Timestamp `json:"timestamp"`
	Detail    []string       `json:"detail,omitempty" doc:"Failures that do not stop evaluation" example:"[\"the read model history is being built\"]"`
}

// health answers 200 while flags are evaluated and the node is not stopping. It reports other failures in detail.
func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	status, body := http.StatusOK, healthBody{Status: a.healthStatus(), Timestamp: rest.Timestamp(a.Now())}
	if body.Status != "ok" {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	} else if body.Detail = a.options.Troubles(); len(body.Detail) > 0 {
		body.Status = "degraded"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = strictjson.Write(w, body)
}

// healthStatus returns whether the service is ok, starting or stopping.
func (a *API) healthStatus() string {
	if a.Stopping.Load() {
		return "stopping"
	}
	select {
	case <-a.Live.Ready():
		return "ok"
	default:
		return "starting"
	}
}

type nameOutput struct {
	Body struct {
		Name    string `json:"name" example:"flagledger"`
		Version string `json:"version" example:"1.0.0"`
	}
}

type versionOutput struct {
	Body struct {
		Version     string         `json:"version" example:"1.0.0"`
		BuildNumber string         `json:"build_number" example:"417"`
		Status      string         `json:"status" example:"ok"`
		Timestamp   rest.Timestamp `json:"timestamp"`
		Environment string         `json:"environment" example:"production"`
	}
}

func (a *API) addSystem() {
	root := rest.Operation("GET", "/", "get-root", "System", "Name and version of the service")
	root.Responses = map[string]*huma.Response{"302": {
		Description: "For a client that accepts text/html: redirects to the dashboard",
		Headers:     map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	rest.Register(a.Core, rest.Access{Who: rest.Anyone}, root,
		func(context.Context, *struct{}) (*nameOutput, error) {
			out := &nameOutput{}
			out.Body.Name, out.Body.Version = "flagledger", Version
			return out, nil
		})
	rest.Register(a.Core, rest.Access{Who: rest.Anyone}, rest.Operation("GET", "/api/v1/version", "get-version",
		"System", "The running build"),
		func(context.Context, *struct{}) (*versionOutput, error) {
			out := &versionOutput{}
			out.Body.Version, out.Body.BuildNumber = Version, a.options.Build
			out.Body.Status, out.Body.Timestamp, out.Body.Environment = "ok", rest.Timestamp(a.Now()), a.Environment
			return out, nil
		})
	doc := a.Huma.OpenAPI()
	content := map[string]*huma.MediaType{
		"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeFor[healthBody](), true, "")},
	}
	doc.AddOperation(&huma.Operation{
		Method:      "GET",
		Path:        "/health",
		OperationID: "get-health",
		Tags:        []string{"System"},
		Summary:     "Whether flags are evaluated",
		Responses: map[string]*huma.Response{
			"200": {Description: "Flags are evaluated. detail lists other failures.", Content: content},
			"503": {Description: "The service is starting or stopping: do not send it calls.", Content: content},
		},
	})
}
