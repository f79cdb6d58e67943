package http

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands/keep/idempotency"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
)

var about = `Every change of a flag is a fact in an event store: it is never edited, and a flag's history shows all of them.

**Conventions.** Bodies are strict JSON: exact member names, no duplicates, no unknown members. Timestamps are UTC with milliseconds. Timestamps of changes
have microseconds: sent as ` + "`at`" + `, such a time includes the change. A list is a bare array; with ` + "`limit`" + ` and ` + "`offset`" + ` the response
has ` + "`X-Total-Count`" + ` and ` + "`Link`" + `. A change responds once reads show it, or after two seconds with
` + "`Preference-Applied: respond-async`" + `. Errors are RFC 9457 problem details; a 422 names the wrong fields in ` + "`errors`" + `. Reads under
` + "`/api/v1`" + ` refuse query parameters that are repeated, or empty except ` + "`q`" + `; the legacy paths use the first and ignore empty ones.

**Retries.** A change accepts an ` + "`Idempotency-Key`" + `: a retry with the same key within ` + events.PeriodText(
	idempotency.TTL,
) + ` returns the first response, with ` + "`Idempotent-Replayed: true`" + `, and is not carried out twice, even after a crash. A key is valid per caller,
tenant and path. A different body with the same key is 422; a retry while the first call is in progress is 409. Responses of 429, or of 500 and above, are not
stored: a retry carries the call out again.

**Tracing.** Every call accepts an ` + "`X-Request-ID`" + `, a UUID, which the response and the log show; without a valid one the service creates one.
` + "`X-Correlation-ID`" + ` is stored with the request's id in the facts of the call.

**Caching.** Responses to changes have ` + "`Cache-Control: no-store`" + `. Responses to reads with a token, except the stream, have
` + "`private, no-cache`" + ` and a ` + "`Vary`" + ` with the headers that they depend on. In production on https every response has
` + "`Strict-Transport-Security`" + `.

**Limits.** Every response shows in ` + "`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`" + ` (seconds) how many requests are left in the
current minute: for the tenant, by its plan, or for the client's address without a token. Beyond the limit, or after too many wrong passwords or secrets for
an account, the answer is 429 with ` + "`Retry-After`" + `. Expensive requests (lists, histories, evaluations of many flags, large bodies) wait in queues that
tenants share fairly: after ` + events.PeriodText(rest.QueueTimeout) + ` a request is 429, or 503 if the whole service is busy. All limits are in
docs/operate/limits.md of the repository; ` + "`GET /api/v1/tenants/{tenantId}/usage`" + ` returns the limits of a tenant.`

// tags lists the sections of the OpenAPI document in the order of its page.
var tags = []*huma.Tag{
	{Name: "Authentication", Description: "Signing up and in, and passwords"},
	{Name: "Flags", Description: "The tenant's flags"},
	{Name: "Variations", Description: "What a flag can serve"},
	{Name: "Rules", Description: "Who gets which variation, in each environment"},
	{Name: "Prerequisites", Description: "What flags require of other flags, in each environment"},
	{Name: "Segments", Description: "Conditions and lists of members that the rules of flags share"},
	{Name: "Evaluation", Description: "What a flag serves to a user"},
	{Name: "OFREP", Description: "Evaluation for OpenFeature's clients"},
	{Name: "Projects", Description: "Groups of flags"},
	{Name: "Project flags", Description: "The flags of a project"},
	{Name: "Tenants", Description: "Tenants, their environments and their usage"},
	{Name: "Members", Description: "The people of a tenant"},
	{Name: "Audit", Description: "Who changed what in the tenant, and when"},
	{Name: "Notifications", Description: "The caller's inbox, and the devices that get pushes"},
	{Name: "Product tours", Description: "The tours that a person has completed"},
	{Name: "Sandbox", Description: "Temporary tenants for trying the service"},
	{Name: "OAuth", Description: "Clients and tokens of machines"},
	{Name: "Evaluation keys", Description: "Keys with which browsers, apps and servers evaluate flags"},
	{Name: "Billing", Description: "Plans, payments and features of a tenant"},
	{Name: "Platform", Description: "For operators of the service"},
	{Name: "System", Description: "Health and version"},
	{Name: "Legacy", Description: "Legacy paths: not for new integrations"},
}

// openAPIConfig returns the configuration of huma, including the header of the OpenAPI document.
func openAPIConfig(publicURL string) huma.Config {
	config := huma.DefaultConfig("flagledger", Version)
	config.Info.Description, config.Tags = about, tags
	config.CreateHooks = nil
	format := huma.Format{Marshal: rest.WriteBody, Unmarshal: strictjson.Read}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format}
	config.DefaultFormat = "application/json"
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.RejectUnknownQueryParameters = true
	if publicURL != "" {
		config.Servers = []*huma.Server{{URL: publicURL}}
	}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"evaluationKey": {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "An evaluation key, which may also be " +
			"sent as a bearer token. One of a browser may call some of these operations alone: see Evaluation keys"},
		"bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A user's ID token"},
		"oauth": {Type: "oauth2", Description: "A machine's access token, sent as a bearer token", Flows: &huma.OAuthFlows{
			ClientCredentials: &huma.OAuthFlow{TokenURL: publicURL + "/api/v1/oauth/token", Scopes: map[string]string{
				string(events.FlagsRead):     "Read flags, variations, rules and history",
				string(events.FlagsWrite):    "Change flags, variations and rules",
				string(events.FlagsEvaluate): "Evaluate flags",
				string(events.FlagsSync):     "Read flags with rules and salts, to evaluate them elsewhere",
				string(events.ProjectsRead):  "Read projects",
				string(events.ProjectsWrite): "Change projects",
			}},
		}},
	}
	return config
}

// publish completes the OpenAPI document and serves it.
func (a *API) publish() {
	doc := a.Huma.OpenAPI()
	a.DescribeErrors(doc)
	for _, schema := range doc.Components.Schemas.Map() {
		rest.AllowNull(schema)
	}
	// Encoding takes longer than the rest of New, so it waits for the first request.
	a.openAPIText = sync.OnceValue(func() []byte {
		text, err := json.Marshal(doc)
		if err != nil {
			panic(err) // the document is part of the program
		}
		return text
	})
	a.Router.Get("/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json")
		_, _ = w.Write(a.openAPIText())
	})
}

// Document returns the OpenAPI document without a server's URL.
func Document() []byte {
	return New(Options{Options: rest.Options{
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now, Quotas: &quota.Tenants{},
	}}).openAPIText()
}
