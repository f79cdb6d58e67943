// Package rest holds what all operations of the REST interface share: who may call them, their bodies, responses and
// refusals, idempotency, queues and limits. The packages of resources build on it.
package rest

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/idempotency"
	"flagledger/commands/keep/keys"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/http/quota"
	"flagledger/projections/usage"
	"flagledger/queries"
)

// maxBody limits the body of a request, unless its operation has another limit.
const maxBody = 1 << 20

// The limits of a request and of its connection.
const (
	MaxHeader         = 32 << 10 // bytes
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 30 * time.Second // for a whole request
	AnswerTimeout     = time.Minute      // from a request's header to the end of its response; streams set their own
	IdleTimeout       = 2 * time.Minute
)

// The limits of a connection of HTTP/2.
const (
	maxConcurrentCalls = 100
	pingAfter          = 30 * time.Second // of silence
	pingTimeout        = 15 * time.Second
)

// Options holds what several resources need.
type Options struct {
	Writer       *writer.Writer
	Queries      *queries.Queries
	Reads        int           // how many queries may run at once
	QueueTimeout time.Duration // the longest that expensive work waits to begin; five seconds if 0
	Live         Live
	Incomplete   func() bool // of an edge: evaluation keys may be missing; nil if none can be
	Identity     people.Identity
	SignIn       *people.SignIn
	Keys         *keys.Keys  // sign access tokens
	Secret       keys.Secret // encrypts the ids of streams, and derives signing secrets
	Directory    *directory.Directory
	Idempotency  *idempotency.Requests
	Meter        *usage.Meter
	Counter      Counter // of evaluations
	Quotas       *quota.Tenants
	SuperUsers   people.SuperUsers
	Now          func() time.Time
	Metrics      *prometheus.Registry
	Log          *slog.Logger
	Proxies      []netip.Prefix // trusted for X-Forwarded-For
	Origins      []string       // web pages that may call the interface, or "*"
	PublicURL    string         // without a slash at its end
	FollowHost   bool           // PublicURL is not configured: stream URLs use the host of the request
	Environment  string         // development or production
}

// Core serves requests up to an operation: it identifies the caller, limits and observes. Its router and huma are where
// operations are added.
type Core struct {
	Options
	Verifier   *tokenVerifier
	Limiter    *quota.Limiter
	Queues     queues
	Router     *chi.Mux
	Huma       huma.API
	PublicPath string      // path of the public URL: empty, or begins with a slash
	Stopping   atomic.Bool // see BeginStop

	open          func(*http.Request) (string, error) // see Open; nil if callers need credentials
	unread        unread
	refusedUnread prometheus.Counter
	onlyHTTPS     bool // sends Strict-Transport-Security
	durations     *durations
}

// New returns a core without routes.
func New(o Options) *Core {
	a := &Core{
		Options:       o,
		Verifier:      newTokenVerifier(o),
		Limiter:       o.Quotas.Limiter,
		Queues:        newQueues(o.Reads, cmp.Or(o.QueueTimeout, QueueTimeout)),
		Router:        chi.NewMux(),
		PublicPath:    publicPathOf(o.PublicURL),
		unread:        unread{by: map[string]int{}},
		refusedUnread: newUnreadCounter(),
		durations:     newDurations(),
		onlyHTTPS:     o.Environment == "production" && strings.HasPrefix(o.PublicURL, "https://"),
	}
	o.Metrics.MustRegister(a.durations, a.refusedUnread)
	a.Router.Use(a.observe)
	a.Router.Use(a.crossOrigin, a.identify, a.limit, checkRequest, middleware.GetHead)
	a.Router.NotFound(NotFound)
	a.Router.MethodNotAllowed(a.methodNotAllowed)
	return a
}

// AddOperations adds the routes that are served once the snapshot is loaded.
func (a *Core) AddOperations(config huma.Config, add func(chi.Router)) {
	a.Router.Get("/problems/{kind}", explain)
	a.Router.Group(func(r chi.Router) {
		r.Use(a.requireStarted)
		setUpHuma()
		a.Huma = humachi.New(r, config)
		add(r)
	})
}

// setUpHuma sets huma's global options.
var setUpHuma = sync.OnceFunc(func() {
	huma.NewErrorWithContext = humaProblem
	// the OpenAPI document takes its shape
	huma.NewError = func(status int, detail string, _ ...error) huma.StatusError { return NewProblem(status, detail) }
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// BeginStop makes /health report that the service is stopping, and closes each connection after its response: a load
// balancer sends the client's next call to another node.
func (a *Core) BeginStop() { a.Stopping.Store(true) }

// Server returns a server of the interface with its limits. The caller starts and stops it.
func (a *Core) Server() *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // for gRPC, which proxies in front of the service may also speak
	return &http.Server{
		Handler:   a,
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxConcurrentCalls,
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingTimeout,
		},

		DisableGeneralOptionsHandler: true, // its response would lack headers
		ReadHeaderTimeout:            ReadHeaderTimeout,
		ReadTimeout:                  ReadTimeout,
		WriteTimeout:                 AnswerTimeout,
		IdleTimeout:                  IdleTimeout,
		MaxHeaderBytes:               MaxHeader,
		ErrorLog:                     slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
	}
}
