package http

import (
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
}

// NewEdge builds the interface of an edge.
func NewEdge(o EdgeOptions) *Edge {
	core := rest.New(o.Options)
	e := &Edge{
		Core: core, Evaluation: evaluation.New(core, o.Evaluation), Flagd: flagd.New(core, o.Evaluation.Changes),
		status: o.Status,
	}
	core.Router.Get("/health", e.health)
	addMetrics(core)
	core.AddOperations(openAPIConfig(core.PublicURL), func(r chi.Router) {
		e.Evaluation.AddEdgeOperations(r)
		e.Flagd.AddSync(r)
	})
	return e
}

type edgeHealth struct {
	Status       string            `json:"status"` // ok, stale, starting or stopping
	Timestamp    rest.Timestamp    `json:"timestamp"`
	AsOf         *time.Time        `json:"asOf,omitempty"` // the oldest of the environments
	Environments []EdgeEnvironment `json:"environments"`
}

// health answers 200 while flags are evaluated, also from a state that is stale.
func (e *Edge) health(w http.ResponseWriter, _ *http.Request) {
	status, body := http.StatusOK, edgeHealth{"ok", rest.Timestamp(e.Now()), nil, e.status()}
	for _, of := range body.Environments {
		if of.Stale {
			body.Status = "stale"
		}
		if of.AsOf != nil && (body.AsOf == nil || of.AsOf.Before(*body.AsOf)) {
			body.AsOf = of.AsOf
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

// ServeWithoutKeys serves callers that send no key with the one that keyOf returns for X-Environment. It refuses web
// pages, the feed, and hosts that are not a name of this machine, so that no page reaches an edge by DNS rebinding.
func (e *Edge) ServeWithoutKeys(keyOf func(environment string) string) {
	e.Core.Open(func(r *http.Request) (key string, err error) {
		host := hostName(r.Host)
		switch {
		case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
			return "", rest.NewProblem(http.StatusForbidden, "an open edge serves no web pages")
		case host != "" && !billing.Loopback(host):
			return "", rest.NewProblem(http.StatusForbidden, "an open edge serves this machine alone: call it by a name of loopback")
		case r.URL.Path == rest.FeedRoute:
			return "", rest.NewProblem(http.StatusForbidden, "the feed needs a server key")
		}
		if key = keyOf(r.Header.Get(rest.EnvironmentHeader)); key == "" {
			return "", rest.NewProblem(http.StatusNotFound, "the edge has no such environment")
		}
		return key, nil
	})
}
