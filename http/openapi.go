package http

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands/keep/idempotency"
	"flagledger/events"
	"flagledger/http/strictjson"
)

var about = `Every change of a flag is a fact in an event store: it is never edited, and a flag's history shows all of them.

**Conventions.** Bodies are strict JSON: exact member names, no duplicates, no unknown members. Timestamps are UTC with milliseconds, those of changes with microseconds: sent as ` + "`at`" + `, such a time includes the change. A list is
a bare array; with ` + "`limit`" + ` and ` + "`offset`" + ` it answers ` + "`X-Total-Count`" + ` and ` + "`Link`" + `.
	A change answers once it can be read; where that takes
over two seconds it answers all the same, with ` + "`Preference-Applied: respond-async`" + `. Errors are RFC 9457 problem details; a 422 names the fields at fault in ` + "`errors`" + `. A read under
` + "`/api/v1`" + ` refuses a query parameter that is sent twice, and an empty one other than ` + "`q`" + `; the old paths take the first, and an empty one for none.

**Repeated requests.** A change takes an ` + "`Idempotency-Key`" + `: repeated with the same key within ` + events.PeriodText(
	idempotency.TTL,
) + `, it is answered as it was the first time, with
` + "`Idempotent-Replayed: true`" + `, and not made twice, whatever died in between. The key is the caller's own in a tenant, for one path. With another body it is refused with
422, while the first call is under way with 409. An answer of 429 or of 500 and above is not kept: then the call is carried out again.

**Tracing.** Every call takes an ` + "`X-Request-ID`" + `, a UUID, which the answer bears and the log shows; without one, or with another text, the service makes one. It takes
an ` + "`X-Correlation-ID`" + ` too, which stands with the request's id in the facts that the call makes.

**Caching.** Answers to changes say ` + "`Cache-Control: no-store`" + `. Those to reads with a token, but for the stream, say ` + "`private, no-cache`" + ` and
name in ` + "`Vary`" + ` the headers that they depend on. In production on https every answer has ` + "`Strict-Transport-Security`" + `.

**Limits.** Every answer tells in ` + "`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`" + ` (seconds) how many requests are left of the window of a minute: of
the tenant, by its plan, or without a token of the client's address. Beyond it the answer is 429 with ` + "`Retry-After`" + `. So it is after too many wrong
passwords or secrets for one account. Costly requests (lists, histories, evaluations of many flags, large bodies) wait in queues that tenants share fairly: one that has
waited for ` + events.PeriodText(queueTimeout) + ` is answered 429, or 503 where the service as a whole is busy. What a
	tenant's flags and changes may take, and all else that is limited, is in
docs/operate/limits.md of the repository; ` + "`GET /api/v1/tenants/{tenantId}/usage`" + ` answers those of a tenant.`

// tags are the chapters of the document, in the order in which its page shows them.
var tags = []*huma.Tag{
	{Name: "Authentication", Description: "Signing up and in, and passwords"},
	{Name: "Flags", Description: "The tenant's flags"},
	{Name: "Variations", Description: "What a flag can serve"},
	{Name: "Rules", Description: "To whom a flag serves what, in each environment"},
	{Name: "Evaluation", Description: "What a flag serves to somebody"},
	{Name: "OFREP", Description: "The same for OpenFeature's clients"},
	{Name: "Projects", Description: "Which group flags"},
	{Name: "Project flags", Description: "The flags of a project"},
	{Name: "Tenants", Description: "With their environments and their usage"},
	{Name: "Members", Description: "The people of a tenant"},
	{Name: "Audit", Description: "Who changed what in the tenant, and when"},
	{Name: "Notifications", Description: "The caller's inbox, and the devices that it is pushed to"},
	{Name: "Product tours", Description: "Which of them a person has completed"},
	{Name: "Sandbox", Description: "Tenants to try the service in, which end by themselves"},
	{Name: "OAuth", Description: "Machines: their clients and tokens"},
	{Name: "Billing", Description: "What a tenant pays for, and what that includes"},
	{Name: "Platform", Description: "For those who run the service"},
	{Name: "System", Description: "Health and version"},
	{Name: "Legacy", Description: "Old paths: not for new integrations"},
}

// openAPI is the configuration of huma, and with it the head of the OpenAPI document.
func (a *API) openAPI() huma.Config {
	config := huma.DefaultConfig("flagledger", Version)
	config.Info.Description, config.Tags = about, tags
	config.CreateHooks = nil
	format := huma.Format{Marshal: writeBody, Unmarshal: strictjson.Read}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format}
	config.DefaultFormat = "application/json"
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.RejectUnknownQueryParameters = true
	if a.PublicURL != "" {
		config.Servers = []*huma.Server{{URL: a.PublicURL}}
	}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A user's ID token"},
		"oauth": {Type: "oauth2", Description: "A machine's access token, sent as a bearer token", Flows: &huma.OAuthFlows{
			ClientCredentials: &huma.OAuthFlow{TokenURL: a.PublicURL + "/api/v1/oauth/token", Scopes: map[string]string{
				string(events.FlagsRead):     "Read flags, variations, rules and history",
				string(events.FlagsWrite):    "Change flags, variations and rules",
				string(events.FlagsEvaluate): "Evaluate flags",
				string(events.ProjectsRead):  "Read projects",
				string(events.ProjectsWrite): "Change projects",
			}},
		}},
	}
	return config
}

// publish serves the document as it stands.
func (a *API) publish() {
	doc := a.huma.OpenAPI()
	a.describeErrors(doc)
	for _, schema := range doc.Components.Schemas.Map() {
		allowNull(schema)
	}
	// Written when it is first asked for: that takes longer than all else that makes an API.
	a.openAPIText = sync.OnceValue(func() []byte {
		text, err := json.Marshal(doc)
		if err != nil {
			panic(err) // the document is part of the program
		}
		return text
	})
	a.router.Get("/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json")
		_, _ = w.Write(a.openAPIText())
	})
}

// Document is the OpenAPI document, without the address of a server.
func Document() []byte {
	return New(Options{Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now}).openAPIText()
}

// withExamples shows a body that an operation takes and one that it answers, where the examples of their members make
// none together. nil shows those of the members.
func withExamples(op huma.Operation, body, answer any) huma.Operation {
	if body != nil {
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Example: body}}}
	}
	if answer != nil {
		status := strconv.Itoa(cmp.Or(op.DefaultStatus, http.StatusOK))
		op.Responses = map[string]*huma.Response{
			status: {Content: map[string]*huma.MediaType{"application/json": {Example: answer}}},
		}
	}
	return op
}

func operationsOf(item *huma.PathItem) []*huma.Operation {
	return slices.DeleteFunc([]*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete},
		func(op *huma.Operation) bool { return op == nil })
}
