package main

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-chi/chi/v5"

	"flagledger/migrations/pgtest"
)

// routeSpy is a log that finds the router in the context of a request.
type routeSpy struct {
	slog.Handler
	router *atomic.Pointer[chi.Routes]
}

func (routeSpy) Enabled(context.Context, slog.Level) bool { return true }
func (s routeSpy) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s routeSpy) Handle(ctx context.Context, _ slog.Record) error {
	if route := chi.RouteContext(ctx); route != nil && route.Routes != nil {
		s.router.Store(&route.Routes)
	}
	return nil
}

// aside are the routes beside the interface, which the document leaves out.
var aside = []string{"GET /docs", "GET /docs/*", "GET /metrics", "GET /openapi.json", "GET /problems/{kind}"}

func TestTheDocumentShowsExactlyWhatIsServed(t *testing.T) {
	t.Parallel()
	spy := routeSpy{slog.DiscardHandler, &atomic.Pointer[chi.Routes]{}}
	s := serviceLogging(t, pgtest.URL(t), slog.New(spy))
	whole, operations := s.anonymous().document()
	served := map[string]bool{}
	err := chi.Walk(*spy.router.Load(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		served[method+" "+route] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range served {
		if operations[name] == nil && !slices.Contains(aside, name) {
			t.Errorf("%s is served and not in the document", name)
		}
	}
	ids := map[any]bool{}
	for name, operation := range operations {
		if !served[name] {
			t.Errorf("%s is in the document and not served", name)
		}
		if operation["summary"] == nil || operation["summary"] == "" || operation["tags"] == nil {
			t.Errorf("%s has no summary or no tag", name)
		}
		if id := operation["operationId"]; id == nil || ids[id] {
			t.Errorf("%s has the operationId %v, which is missing or taken", name, id)
		}
		ids[operation["operationId"]] = true
		checkOperation(t, name, operation)
	}
	checkReferences(t, whole, whole)
	info := whole["info"].(map[string]any)
	same(t, "version and server", []any{whole["openapi"].(string)[:4], info["version"], whole["servers"].([]any)[0].(map[string]any)["url"]}, []string{"3.1.", "1.0.0", s.url})
}

// checkOperation checks that an operation shows what its callers need: parameters, a body for what sends one, good and bad answers.
func checkOperation(t *testing.T, name string, operation map[string]any) {
	t.Helper()
	parameters := map[string]bool{}
	list, _ := operation["parameters"].([]any)
	for _, p := range list {
		parameter := p.(map[string]any)
		required, _ := parameter["required"].(bool)
		parameters[parameter["in"].(string)+" "+parameter["name"].(string)] = required
	}
	for _, part := range strings.Split(name, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok && !parameters["path "+strings.TrimSuffix(name, "}")] {
			t.Errorf("%s does not show the parameter %s", operation["operationId"], part)
		}
	}
	mustSendTenant := []string{"GET /api/v1/flags", "POST /api/v1/flags", "GET /api/v1/flags/{flagKey}", "POST /api/v1/flags/{flagKey}/evaluate", "GET /api/v1/projects", "GET /api/v1/tenants/{tenantId}", "POST /api/v1/oauth/clients"}
	if required := parameters["header X-Tenant-ID"]; required != slices.Contains(mustSendTenant, current(name)) {
		t.Errorf("%s shows X-Tenant-ID as required: %v", name, required)
	}
	if _, shown := parameters["header X-Environment"]; shown != strings.Contains(name, "/flags") {
		t.Errorf("%s shows X-Environment: %v", name, shown)
	}
	method, _, _ := strings.Cut(name, " ")
	onFlag := strings.Contains(name, "{flagKey}") && method != "GET" && !strings.HasSuffix(name, "/evaluate")
	if _, shown := parameters["header If-Match"]; shown != onFlag {
		t.Errorf("%s shows If-Match: %v", name, shown)
	}
	action := slices.ContainsFunc([]string{"/enable", "/disable", "/logout", "/deactivate", "/reactivate", "/accept", "/resend", "/rotate"}, func(verb string) bool { return strings.HasSuffix(name, verb) })
	if sends := operation["requestBody"] != nil; sends != (method == "POST" || method == "PATCH" || method == "PUT") && !action {
		t.Errorf("%s shows a body: %v", name, sends)
	}
	good := false
	responses, _ := operation["responses"].(map[string]any)
	for status, response := range responses {
		good = good || status[0] == '2'
		if response.(map[string]any)["description"] == "" {
			t.Errorf("%s does not describe %s", name, status)
		}
	}
	if !good || name != "GET /health" && len(responses) < 2 {
		t.Errorf("%s shows the answers %v", name, responses)
	}
}

// checkReferences checks that each $ref leads somewhere.
func checkReferences(t *testing.T, whole map[string]any, part any) {
	t.Helper()
	switch part := part.(type) {
	case map[string]any:
		if ref, ok := part["$ref"].(string); ok {
			at := any(whole)
			for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				object, _ := at.(map[string]any)
				at = object[name]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, inner := range part {
			checkReferences(t, whole, inner)
		}
	case []any:
		for _, inner := range part {
			checkReferences(t, whole, inner)
		}
	}
}
