package http_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-chi/chi/v5"

	"flagledger/cmd/flagledger/nodetest"
)

// routeSpy is a log handler that finds the router in a request's context.
type routeSpy struct {
	slog.Handler
	router *atomic.Pointer[chi.Routes]
}

func (routeSpy) Enabled(context.Context, slog.Level) bool { return true }
func (s routeSpy) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s routeSpy) Handle(ctx context.Context, _ slog.Record) error {
	if route := chi.RouteContext(ctx); route != nil && route.Routes != nil {
		routes := route.Routes // the context reuses its array
		s.router.Store(&routes)
	}
	return nil
}

// aside are the routes outside the interface, which the document omits.
var aside = []string{
	"POST /flagd.sync.v1.FlagSyncService/{method}",
	"POST /grpc.health.v1.Health/{method}",
	"GET /app",
	"GET /app/*",
	"GET /docs",
	"GET /docs/",
	"GET /docs/*",
	"GET /docs/page.css",
	"GET /docs/page.js",
	"GET /metrics",
	"GET /openapi.json",
	"GET /problems/{kind}",
	// pages linked from mails
	"GET /reset-password",
	"POST /reset-password",
	"GET /verify-email",
	"POST /verify-email",
	"GET /sandbox",
	"POST /sandbox",
}

func TestTheDocumentShowsExactlyWhatIsServed(t *testing.T) {
	t.Parallel()
	spy := routeSpy{slog.DiscardHandler, &atomic.Pointer[chi.Routes]{}}
	s := nodetest.WithLog(t, nodetest.Database(t), slog.New(spy))
	whole, operations := s.Anonymous().Document()
	served := map[string]bool{}
	err := chi.Walk(
		*spy.router.Load(),
		func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			served[method+" "+route] = true
			return nil
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name := range served {
		if operations[name] == nil && !slices.Contains(aside, name) {
			t.Errorf("%s is served and not in the document", name)
		}
	}
	ids, chapters := map[any]bool{}, nodetest.Column(asMaps(whole["tags"]), "name")
	for name, operation := range operations {
		if !served[name] {
			t.Errorf("%s is in the document and not served", name)
		}
		if operation["summary"] == nil || operation["summary"] == "" {
			t.Errorf("%s has no summary", name)
		}
		if tags, _ := operation["tags"].([]any); len(tags) != 1 || !slices.Contains(chapters, tags[0]) {
			t.Errorf("%s has the tags %v: the document has %v", name, tags, chapters)
		}
		if id := operation["operationId"]; id == nil || ids[id] {
			t.Errorf("%s has the operationId %v, which is missing or taken", name, id)
		}
		ids[operation["operationId"]] = true
		checkOperation(t, name, operation)
		checkExamples(t, whole, name, operation)
		for status, response := range object(operation["responses"]) {
			for media, body := range object(object(response)["content"]) {
				if status[0] == '2' && media == "application/json" && object(body)["schema"] != nil {
					s.CheckExample(name, status, media, sample(whole, object(body)))
				}
			}
		}
	}
	checkReferences(t, whole, whole)
	info := whole["info"].(map[string]any)
	nodetest.Same(t, "version and server",
		[]any{whole["openapi"].(string)[:4], info["version"], whole["servers"].([]any)[0].(map[string]any)["url"]},
		[]string{"3.1.", "1.0.0", s.URL})
}

// checkOperation checks that the document of an operation is complete: parameters, a body if it sends one, good and bad
// responses.
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
	mustSendTenant := []string{
		"GET /api/v1/flags",
		"POST /api/v1/flags",
		"GET /api/v1/flags/{flagKey}",
		"GET /api/v1/projects",
		"GET /api/v1/tenants/{tenantId}",
		"POST /api/v1/oauth/clients",
		"POST /api/v1/billing/checkout",
		"GET /api/v1/sandbox/status",
	}
	if required := parameters["header X-Tenant-ID"]; required != slices.Contains(mustSendTenant, current(name)) {
		t.Errorf("%s shows X-Tenant-ID as required: %v", name, required)
	}
	ofSegments := strings.Contains(name, "/segments/")
	inEnvironment := name == "GET /api/v1/feed" || name == "POST /v1/logs" || ofSegments && strings.HasSuffix(name, "/check") ||
		strings.Contains(name, "/flags") && !ofSegments && !strings.HasSuffix(name, "/metrics")
	if _, shown := parameters["header X-Environment"]; shown != inEnvironment {
		t.Errorf("%s shows X-Environment: %v", name, shown)
	}
	method, _, _ := strings.Cut(name, " ")
	onFlag := strings.Contains(name, "{flagKey}") && method != "GET" && !strings.HasSuffix(name, "/evaluate") ||
		strings.Contains(name, "{segmentKey}") && method != "GET" && !strings.HasSuffix(name, "/check")
	if _, shown := parameters["header If-Match"]; shown != onFlag {
		t.Errorf("%s shows If-Match: %v", name, shown)
	}
	action := slices.ContainsFunc(
		[]string{
			"/enable",
			"/disable",
			"/logout",
			"/deactivate",
			"/reactivate",
			"/accept",
			"/decline",
			"/resend",
			"/resend-verification",
			"/rotate",
			"/forget",
			"/read",
			"/read-all",
			"/cleanup/tenant",
		},
		func(verb string) bool { return strings.HasSuffix(name, verb) },
	)
	if sends := operation["requestBody"] != nil; sends != (method == "POST" || method == "PATCH" || method == "PUT") &&
		!action {
		t.Errorf("%s shows a body: %v", name, sends)
	}
	good := false
	responses, _ := operation["responses"].(map[string]any)
	for status, response := range responses {
		good = good || status[0] == '2'
		if object(response)["$ref"] == nil && object(response)["description"] == nil {
			t.Errorf("%s does not describe %s", name, status)
		}
	}
	if !good || name != "GET /health" && len(responses) < 2 {
		t.Errorf("%s shows the answers %v", name, responses)
	}
}

// checkExamples checks that each accepted body, good response and error has an example, whole or of each member.
func checkExamples(t *testing.T, whole map[string]any, name string, operation map[string]any) {
	t.Helper()
	check := func(what string, content any) {
		for media, body := range object(content) {
			if missing := exampleless(whole, object(body), ""); len(missing) > 0 {
				t.Errorf("%s shows no example of %s, %s: %s", name, what, media, strings.Join(missing, ", "))
			}
		}
	}
	check("its request", object(operation["requestBody"])["content"])
	for status, response := range object(operation["responses"]) {
		content := object(resolve(whole, object(response))["content"])
		if content == nil && status[0] >= '4' {
			t.Errorf("%s does not show what it answers with %s", name, status)
		}
		check("its answer "+status, content)
	}
	for _, p := range list(operation["parameters"]) {
		if in := object(p)["in"]; in == "path" && object(p)["example"] == nil &&
			len(exampleless(whole, object(object(p)["schema"]), "")) > 0 {
			t.Errorf("%s shows no example of its parameter %s", name, object(p)["name"])
		}
	}
}

// exampleless lists the members of a schema or body without an example.
func exampleless(whole, schema map[string]any, at string) (missing []string) {
	if schema["schema"] != nil && schema["example"] == nil && schema["examples"] == nil {
		schema = object(schema["schema"])
	}
	schema = resolve(whole, schema)
	if schema["example"] != nil || schema["examples"] != nil || schema["enum"] != nil {
		return nil
	}
	properties, items, rest := object(schema["properties"]), object(schema["items"]), object(schema["additionalProperties"])
	for _, way := range list(schema["oneOf"]) {
		missing = append(missing, exampleless(whole, object(way), at)...)
	}
	switch {
	case schema["oneOf"] != nil:
	case len(properties) > 0:
		for name, property := range properties {
			missing = append(missing, exampleless(whole, object(property), at+"."+name)...)
		}
	case items != nil:
		missing = exampleless(whole, items, at+"[]")
	case rest != nil:
		missing = exampleless(whole, rest, at+".*")
	default:
		missing = []string{strings.TrimPrefix(at, ".")}
	}
	return missing
}

// sample returns the example of a body, composed of its members' examples.
func sample(whole, schema map[string]any) any {
	if schema["schema"] != nil {
		if schema["example"] != nil {
			return schema["example"]
		}
		schema = object(schema["schema"])
	}
	schema = resolve(whole, schema)
	properties, items, rest := object(schema["properties"]), object(schema["items"]), object(schema["additionalProperties"])
	switch {
	case schema["examples"] != nil:
		return list(schema["examples"])[0]
	case schema["oneOf"] != nil:
		return sample(whole, object(list(schema["oneOf"])[0]))
	case schema["enum"] != nil:
		return list(schema["enum"])[0]
	case len(properties) > 0:
		body := map[string]any{}
		for name, property := range properties {
			body[name] = sample(whole, object(property))
		}
		return body
	case items != nil:
		return []any{sample(whole, items)}
	case rest != nil:
		return map[string]any{"any": sample(whole, rest)}
	default:
		return nil
	}
}

// object returns a part of the document as an object, or nil; list does the same for lists.
func object(part any) map[string]any {
	o, _ := part.(map[string]any)
	return o
}

func list(part any) []any {
	l, _ := part.([]any)
	return l
}

func asMaps(part any) (maps []map[string]any) {
	for _, entry := range list(part) {
		maps = append(maps, object(entry))
	}
	return maps
}

// resolve follows the reference of a part of the document, if it is one.
func resolve(whole, part map[string]any) map[string]any {
	ref, ok := part["$ref"].(string)
	if !ok {
		return part
	}
	at := any(whole)
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		at = object(at)[name]
	}
	return object(at)
}

// The things that the examples name.
const exampleProject = "0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"

var exampleVariations = [2]string{"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77", "0198c5a1-7d2e-7b10-9d0c-4a6b8c0d2e88"}

var twoVariations = []any{map[string]any{"name": "a", "value": true}, map[string]any{"name": "b", "value": false}}

// idsInExamples replaces the ids that examples name by the ids of a project, and of a flag with two variations.
func idsInExamples(s *nodetest.Service, project string, flag map[string]any) *strings.Replacer {
	variations := nodetest.Column(asMaps(flag["variations"]), "id")
	return strings.NewReplacer("https://app.example.com", s.URL, exampleProject, project, exampleVariations[0],
		variations[0].(string), exampleVariations[1], variations[1].(string))
}

// requiredInExamples creates the flags that the example of prerequisites names, and returns that with variations.
func requiredInExamples(me *nodetest.Client) map[string]any {
	me.CreateFlag("kill-checkout", nil)
	return me.CreateFlag("payments", map[string]any{"flag_variations": twoVariations})
}

func TestTheExamplesAreTaken(t *testing.T) {
	nodetest.Cases{
		"each example of a body is one that its operation takes": func(t *testing.T, me *nodetest.Client) {
			whole, operations := me.Document()
			project, _ := me.CreateProject("p")
			required := requiredInExamples(me)
			body := func(content map[string]any, flag map[string]any) string {
				text, err := json.Marshal(sample(whole, content))
				if err != nil {
					t.Fatal(err)
				}
				return idsInExamples(me.Service, project, flag).Replace(string(text))
			}
			for name, operation := range operations {
				content := object(object(object(operation["requestBody"])["content"])["application/json"])
				if content == nil {
					continue
				}
				key := strings.ToLower(rand.Text())
				flag := me.CreateFlag(key, map[string]any{"projectId": project, "flag_variations": twoVariations})
				variations := nodetest.Column(asMaps(flag["variations"]), "id")
				if strings.HasSuffix(name, "/prerequisites") {
					flag = required
				}
				method, path, _ := strings.Cut(name, " ")
				path = strings.NewReplacer("{projectId}", project, "{flagKey}", key, "{key}", key, "{variationId}", variations[0].(string)).
					Replace(path)
				a := me.Call(method, filled(me, path), body(content, flag))
				switch {
				case name == "POST /api/v1/auth/reset-password" || name == "POST /api/v1/auth/verify-email":
					a.Refused(422, "token") // which comes by mail
				case name == "POST /api/v1/billing/webhook":
					a.Refused(400) // without a signature
				case strings.HasPrefix(name, "POST ") && strings.HasSuffix(name, "/environments"):
					a.Want(201)
					// other examples name the environments of a new tenant
					me.Call("DELETE", filled(me, path)+"/"+a.Object()["environment"].(string), nil).Want(204)
				case strings.HasSuffix(name, "/flag-rules"):
					a.Want(200)
					me.Call("PUT", flagRulesPath(me), `{}`).Want(200) // the other examples need not match them
				case strings.HasSuffix(name, "/billing/checkout") || strings.HasSuffix(name, "/billing/portal"):
					a.Refused(503) // without Stripe
				case a.Status == 400 || a.Status == 415 || a.Status == 422 || a.Status >= 500:
					t.Errorf("%s answers its own example with %d: %s", name, a.Status, a.Body)
				}
			}
		},
		"the example of a new flag is taken as it stands, and answered as the document shows": func(t *testing.T, me *nodetest.Client) {
			whole, operations := me.Document()
			create := operations["POST /api/v1/flags"]
			of := func(part any) any {
				return sample(whole, object(object(resolve(whole, object(part))["content"])["application/json"]))
			}
			text, err := json.Marshal(of(create["requestBody"]))
			if err != nil {
				t.Fatal(err)
			}
			shown, got := object(of(object(create["responses"])["201"])), me.Call("POST", "/api/v1/flags", string(text)).
				Want(201).
				Object()
			for _, flag := range []map[string]any{shown, got} { // without random values
				for _, drawn := range []string{"id", "createdAt", "updatedAt"} {
					delete(flag, drawn)
				}
				for _, variation := range asMaps(flag["variations"]) {
					delete(variation, "id")
				}
			}
			nodetest.Same(t, "the flag", got, shown)
		},
	}.Run(t)
}

// checkReferences checks that each $ref resolves.
func checkReferences(t *testing.T, whole map[string]any, part any) {
	t.Helper()
	switch part := part.(type) {
	case map[string]any:
		if resolve(whole, part) == nil {
			t.Errorf("%s leads nowhere", part["$ref"])
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
