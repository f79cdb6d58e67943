package http

import (
	"cmp"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"flagledger/commands/billing"
	"flagledger/http/evaluation"
	"flagledger/http/flagd"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
)

// EdgeOptions holds what an edge serves from.
type EdgeOptions struct {
	rest.Options
	Evaluation evaluation.Options
	Status     func() []EdgeEnvironment
	// Upstream takes reports of usage. The edge has admitted their callers.
	Upstream http.Handler
}

// EdgeEnvironment says how current an environment of an edge is.
type EdgeEnvironment struct {
	TenantID    string     `json:"tenantId,omitempty"`
	Environment string     `json:"environment,omitempty"`
	AsOf        *time.Time `json:"asOf"` // null before the first contact
	Stale       bool       `json:"stale"`
	Detail      string     `json:"detail,omitempty"`
}

// Edge serves evaluations, streams, the feed and flagd's protocol, to callers with evaluation keys alone.
type Edge struct {
	*rest.Core
	Evaluation *evaluation.API
	Flagd      *flagd.API
	status     func() []EdgeEnvironment
	upstream   http.Handler
	keyOf      func(*http.Request) (string, error) // see ServeWithoutKeys; nil unless callers need no key
}

// NewEdge builds the interface of an edge.
func NewEdge(o EdgeOptions) *Edge {
	core := rest.New(o.Options)
	e := &Edge{
		Core: core, Evaluation: evaluation.New(core, o.Evaluation), Flagd: flagd.New(core, o.Evaluation.Changes),
		status: o.Status, upstream: o.Upstream,
	}
	core.Router.Get("/health", e.health)
	addMetrics(core)
	core.AddOperations(openAPIConfig(core.PublicURL), func(r chi.Router) {
		e.Evaluation.AddEdgeOperations(r)
		e.Flagd.AddSync(r)
		r.Post(rest.UsageRoute, e.forwardReport)
		r.Post(rest.LogsRoute, e.forwardReport)
	})
	return e
}

type edgeHealth struct {
	Status       string            `json:"status"` // ok, stale, starting or stopping
	Timestamp    rest.Timestamp    `json:"timestamp"`
	AsOf         *time.Time        `json:"asOf,omitempty"` // the oldest of the environments
	Environments []EdgeEnvironment `json:"environments"`
}

// health answers 200 while flags are evaluated, also from a state that is stale. Only callers on this machine see
// tenants and errors.
func (e *Edge) health(w http.ResponseWriter, r *http.Request) {
	status, body := http.StatusOK, edgeHealth{"ok", rest.Timestamp(e.Now()), nil, e.status()}
	local := onThisMachine(r)
	for i, one := range body.Environments {
		if !local {
			body.Environments[i].TenantID, body.Environments[i].Detail = "", ""
		}
		if one.Stale {
			body.Status = "stale"
		}
		if one.AsOf != nil && (body.AsOf == nil || one.AsOf.Before(*body.AsOf)) {
			body.AsOf = one.AsOf
		}
	}
	select {
	case <-e.Live.Ready():
	default:
		body.Status, status = "starting", http.StatusServiceUnavailable
	}
	if e.Stopping.Load() {
		body.Status, status = "stopping", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = strictjson.Write(w, body)
}

// ServeWithoutKeys makes calls without a key use keyOf(environment), which is that of X-Environment or of flagd's
// selector. From then on the edge refuses web pages, what a proxy forwards, and hosts that are not a name of this
// machine, so that no page reaches it by DNS rebinding, and does not serve the feed.
func (e *Edge) ServeWithoutKeys(keyOf func(environment string) string) {
	e.keyOf = func(r *http.Request) (string, error) {
		environment := cmp.Or(r.Header.Get(rest.EnvironmentHeader), flagd.EnvironmentOf(r.Header))
		if key := keyOf(environment); key != "" {
			return key, nil
		}
		return "", rest.NewProblem(http.StatusNotFound, "the edge has no such environment")
	}
	e.Open(e.keyOf)
}

// forwardReport passes a report on to the service, for a caller with access to this edge.
func (e *Edge) forwardReport(w http.ResponseWriter, r *http.Request) {
	_, err := e.Evaluation.AdmitReporter(r)
	if err == nil && e.keyOf != nil && !rest.HasCredentials(r) {
		var key string
		key, err = e.keyOf(r)
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	e.upstream.ServeHTTP(w, r)
}

// ServeHTTP implements net/http.Handler.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := refusedOpen(r); e.keyOf != nil && why != "" {
		w.Header()[rest.NosniffHeader] = rest.Nosniff
		http.Error(w, why, http.StatusForbidden)
		return
	}
	e.Core.ServeHTTP(w, r)
}

// refusedOpen returns why an open edge refuses a request, or "".
func refusedOpen(r *http.Request) string {
	host := hostName(r.Host)
	switch {
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		return "an open edge serves no web pages"
	case host != "" && !billing.Loopback(host):
		return "an open edge serves only this machine: call it as localhost or 127.0.0.1"
	case forwarded(r):
		return "an open edge serves no calls that a proxy forwards"
	default:
		return ""
	}
}

// Server returns a server of the interface with its limits. The caller starts and stops it.
func (e *Edge) Server() *http.Server {
	server := e.Core.Server()
	server.Handler = e
	return server
}
