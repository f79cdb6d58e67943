// Package evaluation serves the evaluation of flags, for our own clients and OpenFeature's, and the stream of changes.
package evaluation

import (
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/http/rest"
)

// Options holds what the stream of changes needs.
type Options struct {
	Changes      Changes
	Feeds        Feeds
	Reports      Reports
	StreamLimits StreamLimits
	// SigningSecrets returns the secrets with which the contexts of a signed key may be signed, by a signing id.
	SigningSecrets func(id string) ([]string, error)
}

// API serves evaluations and streams.
type API struct {
	*rest.Core
	Options
	evaluated   evaluationCounters
	openStreams prometheus.Gauge
	streams     *rest.StreamCounts
	ending      chan struct{} // closed by EndStreams
	end         func()

	// schemas of bodies that huma does not read
	evaluateSchema, legacyEvaluateSchema, evaluateManySchema, evaluateDraftSchema, checkSegmentSchema *huma.Schema
}

// New returns the operations of a core.
func New(core *rest.Core, o Options) *API {
	a := &API{
		Core:        core,
		Options:     o,
		evaluated:   newEvaluationCounters(core.Metrics),
		openStreams: newStreamGauge(),
		streams:     rest.NewStreamCounts(),
		ending:      make(chan struct{}),
	}
	a.end = sync.OnceFunc(func() { close(a.ending) })
	core.Metrics.MustRegister(a.openStreams)
	return a
}

// AddOperations adds the operations to the router and the OpenAPI document.
func (a *API) AddOperations(r chi.Router) {
	a.AddEdgeOperations(r)
	r.Post(rest.DeprecatedRoute(rest.LegacyEvaluateRoute, a.legacyEvaluate))
	r.Post(rest.EvaluateDraftRoute, a.evaluateDraft)
	r.Post(rest.CheckSegmentRoute, a.checkSegment)
	a.documentCheckSegment()
	a.documentEvaluateDraft()
	a.addReportUsage()
	r.Post(rest.LogsRoute, a.reportLogs)
	a.documentLogs()
}

// AddEdgeOperations adds the operations that an edge has too.
func (a *API) AddEdgeOperations(r chi.Router) {
	r.Post(rest.EvaluateRoute, a.evaluate)
	r.Post(rest.EvaluateManyRoute, a.evaluateMany)
	r.Post(rest.OFREPRoute, a.ofrepEvaluate)
	r.Post(rest.OFREPManyRoute, a.ofrepEvaluateMany)
	r.Get(rest.StreamRoute, a.stream)
	r.Get(rest.FeedRoute, a.feed)
	a.documentEvaluate()
	a.documentOFREP()
	a.documentStream()
	a.documentFeed()
}

// EndStreams ends all streams, including ones opened later.
func (a *API) EndStreams() { a.end() }
