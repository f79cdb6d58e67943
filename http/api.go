// Package http is the REST interface: huma operations on a chi router, one file per resource.
package http

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

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/checkpoints"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/idempotency"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/keys"
	"flagledger/commands/keep/tours"
	"flagledger/http/quota"
	"flagledger/projections/usage"
	"flagledger/queries"
)

// Version is the version of the interface.
const Version = "1.0.0"

const (
	maxBody           = 1<<20 + 1 // huma refuses a body of this size: 1 MiB is still taken
	maxHeader         = 32 << 10
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // for a whole request
	answerTimeout     = time.Minute      // from a request's header to the end of its response; streams set their own
	idleTimeout       = 2 * time.Minute
)

// Options holds the parts and settings of the interface.
type Options struct {
	Writer       *commands.Writer
	Queries      *queries.Queries
	Reads        int           // how many queries may run at once
	QueueTimeout time.Duration // the longest that expensive work waits to begin; five seconds if 0
	Live         Live
	Changes      Changes
	Identity     commands.Identity
	SignIn       *commands.SignIn
	Reclaimer    *commands.Reclaimer
	Inviter      *commands.Inviter
	Tenancies    *commands.Tenancies
	Billing      *commands.Billing
	Sandboxes    *commands.Sandboxes
	// SandboxSignUp creates sandboxes on request, and Links mails the links to them.
	SandboxSignUp    *commands.SandboxSignUp
	Links            *jobs.Links
	DailyInvitations *jobs.DailyInvitations
	Keys             *keys.Keys  // sign access tokens
	Secret           keys.Secret // encrypts the ids of streams
	Now              func() time.Time
	Directory        *directory.Directory
	Inbox            *inbox.Inbox
	// Notifications puts notifications into inboxes.
	Notifications *commands.Notifications

	Meter       *usage.Meter
	Tours       *tours.Tours
	Checkpoints *checkpoints.Checkpoints
	Idempotency *idempotency.Requests
	Metrics     *prometheus.Registry
	// LoopbackMetrics serves the metrics at /metrics, to clients on the same machine alone.
	LoopbackMetrics bool
	Log             *slog.Logger

	// Troubles lists failures that do not stop evaluation; it is empty if there are none.
	Troubles func() []string
	// Status returns this node's view of the service, for operators.
	Status func() ServiceStatus

	// StaleAfter is the time without evaluation or change after which a flag is unused or settled.
	StaleAfter time.Duration

	Quotas *quota.Tenants
	// InvitationsPerDay replaces the plans' daily quota of invitations, unless it is 0.
	InvitationsPerDay int
	Features          Features
	StreamLimits      StreamLimits
	Proxies           []netip.Prefix // trusted for X-Forwarded-For
	Origins           []string       // web pages that may call the interface, or "*"

	SuperUsers  commands.SuperUsers
	PublicURL   string // without a slash at its end
	FollowHost  bool   // PublicURL is not configured: stream URLs use the host of the request
	Environment string // development or production
	Build       string // the build's number
}

// API serves the interface.
type API struct {
	Options
	verifier      *tokenVerifier
	limiter       *quota.Limiter
	queues        queues
	unread        unread
	refusedUnread prometheus.Counter
	router        *chi.Mux
	publicPath    string // path of the public URL: empty, or begins with a slash
	onlyHTTPS     bool   // sends Strict-Transport-Security
	huma          huma.API
	durations     *durations
	evaluated     evaluationCounters
	openStreams   prometheus.Gauge
	streams       streamCounts
	openAPIText   func() []byte // the OpenAPI document
	stopping      atomic.Bool   // see BeginStop
	ending        chan struct{} // closed by EndStreams
	end           func()

	// schemas of bodies that huma does not read
	evaluateSchema, legacyEvaluateSchema, evaluateManySchema, evaluateDraftSchema *huma.Schema
}

// New builds the interface.
func New(o Options) *API {
	a := &API{
		Options:       o,
		verifier:      newTokenVerifier(o),
		limiter:       o.Quotas.Limiter,
		queues:        newQueues(o.Reads, cmp.Or(o.QueueTimeout, queueTimeout)),
		router:        chi.NewMux(),
		durations:     newDurations(),
		evaluated:     newEvaluationCounters(o.Metrics),
		unread:        unread{by: map[string]int{}},
		refusedUnread: newUnreadCounter(),
		openStreams:   newStreamGauge(),
		publicPath:    publicPathOf(o.PublicURL),
		onlyHTTPS: o.Environment == "production" &&
			strings.HasPrefix(o.PublicURL, "https://"),
		streams: streamCounts{byOwner: map[string]int{}},
		ending:  make(chan struct{}),
	}
	a.end = sync.OnceFunc(func() { close(a.ending) })
	o.Metrics.MustRegister(a.durations, a.openStreams, a.refusedUnread)
	a.router.Use(a.observe)
	if len(o.Origins) > 0 {
		a.router.Use(a.crossOrigin)
	}
	a.router.Use(a.identify, a.limit, checkRequest, middleware.GetHead, a.leadToDashboard)
	a.router.NotFound(notFound)
	a.router.MethodNotAllowed(a.methodNotAllowed)
	a.router.Get("/health", a.health)
	if o.LoopbackMetrics {
		a.addMetrics()
	}
	a.router.Get("/problems/{kind}", explain)
	a.router.Get(jwksRoute, a.jwks)
	a.addDocs()
	a.addPages()
	a.addDashboard()
	a.router.Group(a.addRoutes)
	a.publish()
	return a
}

// addRoutes adds the routes that are served once the snapshot is loaded.
func (a *API) addRoutes(r chi.Router) {
	r.Use(a.requireStarted)
	r.Post(evaluateRoute, a.evaluate)
	r.Post(deprecatedRoute(legacyEvaluateRoute, a.legacyEvaluate))
	r.Post(evaluateManyRoute, a.evaluateMany)
	r.Post(evaluateDraftRoute, a.evaluateDraft)
	r.Post(ofrepRoute, a.ofrepEvaluate)
	r.Post(ofrepManyRoute, a.ofrepEvaluateMany)
	r.Post(grantRoute, a.issueToken)
	r.Post(deprecatedRoute(legacyGrantRoute, a.issueToken))
	r.Get(streamRoute, a.stream)
	r.Post(webhookRoute, a.webhook)
	setUpHuma()
	a.huma = humachi.New(r, a.openAPI())
	a.addSystem()
	a.addAuth()
	a.addLegacy()
	a.addOAuth()
	a.addTenants()
	a.addEnvironments()
	a.addFlagRules()
	a.addMembers()
	a.addUsage()
	a.addBilling()
	a.addFeatures()
	a.addCheckout()
	a.addPlatform()
	a.addServiceStatus()
	a.addInvitations()
	a.addProductTours()
	a.addSandbox()
	a.addSandboxSignUp()
	a.addLegacyPlatform()
	a.addNotifications()
	a.addProjects()
	a.addFlags()
	a.addProjectFlags()
	a.addVariations()
	a.addRules()
	a.addHistory()
	a.addFlagMetrics()
	a.addAudit()
	a.addVersions()
	a.addRevert()
	a.documentEvaluate()
	a.documentEvaluateDraft()
	a.documentOFREP()
	a.documentToken()
	a.documentJWKS()
	a.documentStream()
	a.documentWebhook()
	checkLegacyRoutes(a.huma.OpenAPI())
}

// setUpHuma sets huma's global options.
var setUpHuma = sync.OnceFunc(func() {
	huma.NewErrorWithContext = humaProblem
	// the OpenAPI document takes its shape
	huma.NewError = func(status int, detail string, _ ...error) huma.StatusError { return newProblem(status, detail) }
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// BeginStop makes /health report that the service is stopping, and closes each connection after its response: a load
// balancer sends the client's next call to another node.
func (a *API) BeginStop() { a.stopping.Store(true) }

// EndStreams ends all streams, including ones opened later.
func (a *API) EndStreams() { a.end() }

// Server returns a server of the interface with its limits. The caller starts and stops it.
func (a *API) Server() *http.Server {
	return &http.Server{
		Handler: a,

		DisableGeneralOptionsHandler: true, // its response would lack headers
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 answerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
	}
}

func unwrap(ctx huma.Context) (*http.Request, http.ResponseWriter) { return humachi.Unwrap(ctx) }

// Changed holds the response headers of a change.
type Changed struct {
	Preference string `header:"Preference-Applied" doc:"respond-async if lists do not show the change yet"`
}

func changeHeaders(done commands.Done) Changed {
	if done.Stale {
		return Changed{Preference: "respond-async"}
	}
	return Changed{}
}

// success is the response to an action.
type success struct {
	Success bool `json:"success" example:"true"`
}

type successOutput struct {
	Changed
	Body success
}

func successResponse(done commands.Done) *successOutput {
	return &successOutput{Changed: changeHeaders(done), Body: success{true}}
}

// noContent is the response to a DELETE.
type noContent struct{ Changed }

func operation(method, path, id, tag, summary string) huma.Operation {
	return huma.Operation{Method: method, Path: path, OperationID: id, Tags: []string{tag}, Summary: summary}
}
