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
	"flagledger/commands/keep/metering"
	"flagledger/commands/keep/tours"
	"flagledger/http/limit"
	"flagledger/queries"
)

// Version is the version of the interface.
const Version = "1.0.0"

const (
	maxBody           = 1<<20 + 1 // huma refuses a body of this size: 1 MiB is still taken
	maxHeader         = 32 << 10
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // of a whole request
	answerTimeout     = time.Minute      // from the header of a request to the end of its answer; streams set their own
	idleTimeout       = 2 * time.Minute
)

// Options is what the interface is made of.
type Options struct {
	Writer    *commands.Writer
	Queries   *queries.Queries
	Reads     int           // that Queries may make at once
	Patience  time.Duration // the longest that costly work waits to begin, five seconds if 0
	Live      Live
	Changes   Changes
	Identity  commands.Identity
	SignIn    *commands.SignIn
	Reclaimer *commands.Reclaimer
	Inviter   *commands.Inviter
	Tenancies *commands.Tenancies
	Billing   *commands.Billing
	Sandboxes *commands.Sandboxes
	// SandboxSignUp makes sandboxes for people who ask for one, and Links mails them the links.
	SandboxSignUp    *commands.SandboxSignUp
	Links            *jobs.Links
	DailyInvitations *jobs.DailyInvitations
	Keys             *keys.Keys  // that access tokens are signed with
	Secret           keys.Secret // that ids of streams are encrypted with
	Now              func() time.Time
	Directory        *directory.Directory
	Inbox            *inbox.Inbox
	// Notifications puts notifications into inboxes.
	Notifications *commands.Notifications

	Meter       *metering.Meter
	Tours       *tours.Tours
	Checkpoints *checkpoints.Checkpoints
	Idempotency *idempotency.Requests
	Metrics     *prometheus.Registry
	// LoopbackMetrics serves the metrics at /metrics, to clients on the same machine alone.
	LoopbackMetrics bool
	Log             *slog.Logger

	// Troubles lists what is wrong although evaluation goes on; it is empty when all is well.
	Troubles func() []string
	// Status is how the node sees the service, for those who run it.
	Status func() ServiceStatus

	// StaleAfter is how long a flag must have been without use or change to be unused or settled.
	StaleAfter time.Duration

	Limits limit.Limits
	// InvitationsPerDay bounds invitations in place of what plans give, unless it is 0.
	InvitationsPerDay int
	Features          Features
	StreamLimits      StreamLimits
	Proxies           []netip.Prefix // whose X-Forwarded-For is believed
	Origins           []string       // of the web pages that may call the interface, or "*"

	SuperUsers  commands.SuperUsers
	PublicURL   string // without a slash at its end
	FollowHost  bool   // nobody has set PublicURL: the addresses of streams begin as the request was sent
	Environment string // development or production
	Build       string // the build's number
}

// API serves the interface.
type API struct {
	Options
	verifier      *tokenVerifier
	limiter       *limit.Limiter
	queues        queues
	unread        unread
	refusedUnread prometheus.Counter
	router        *chi.Mux
	publicPath    string // of the public URL, empty or beginning with a slash
	onlyHTTPS     bool   // browsers are told to use nothing else
	huma          huma.API
	durations     *durations
	evaluated     evaluationCounters
	openStreams   prometheus.Gauge
	streams       streamCounts
	openAPIText   func() []byte // the OpenAPI document
	stopping      atomic.Bool   // see BeginStop
	ending        chan struct{} // closed by EndStreams
	end           func()

	// of bodies that huma does not read
	evaluateSchema, legacyEvaluateSchema, evaluateManySchema, evaluateDraftSchema *huma.Schema
}

// New builds the interface.
func New(o Options) *API {
	a := &API{
		Options:       o,
		verifier:      newTokenVerifier(o),
		limiter:       limit.New(o.Limits, o.Proxies, o.Now),
		queues:        newQueues(o.Reads, cmp.Or(o.Patience, patience)),
		router:        chi.NewMux(),
		durations:     newDurations(),
		evaluated:     newEvaluationCounters(o.Metrics),
		unread:        unread{by: map[string]int{}},
		refusedUnread: newUnreadCounter(),
		openStreams:   newStreamGauge(),
		publicPath:    publicPathOf(o.PublicURL),
		onlyHTTPS: o.Environment == "production" &&
			strings.HasPrefix(o.PublicURL, "https://"),
		streams: streamCounts{of: map[string]int{}},
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

// addRoutes adds what is answered once the flags are there.
func (a *API) addRoutes(r chi.Router) {
	r.Use(a.started)
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

// setUpHuma sets what huma has for the whole process.
var setUpHuma = sync.OnceFunc(func() {
	huma.NewErrorWithContext = humaProblem
	// of which the document takes the shape
	huma.NewError = func(status int, detail string, _ ...error) huma.StatusError { return newProblem(status, detail) }
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// BeginStop has /health say from now on that the service is stopping, and each answer that it closes the connection:
// the client sends its next call on a new one, which a load balancer leads to another node.
func (a *API) BeginStop() { a.stopping.Store(true) }

// EndStreams ends all streams, and those that are opened later.
func (a *API) EndStreams() { a.end() }

// Server returns a server of the interface with its limits, which its caller starts and stops.
func (a *API) Server() *http.Server {
	return &http.Server{
		Handler: a,

		DisableGeneralOptionsHandler: true, // its answer would lack headers
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 answerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
	}
}

func unwrap(ctx huma.Context) (*http.Request, http.ResponseWriter) { return humachi.Unwrap(ctx) }

// Changed is the headers of an answer to a change.
type Changed struct {
	Preference string `header:"Preference-Applied" doc:"respond-async where the lists do not show the change yet"`
}

func changedBy(done commands.Done) Changed {
	if done.Stale {
		return Changed{Preference: "respond-async"}
	}
	return Changed{}
}

// success is the answer to an action.
type success struct {
	Success bool `json:"success" example:"true"`
}

type successOutput struct {
	Changed
	Body success
}

func succeeded(done commands.Done) *successOutput {
	return &successOutput{Changed: changedBy(done), Body: success{true}}
}

// noContent is the answer to a DELETE.
type noContent struct{ Changed }

func operation(method, path, id, tag, summary string) huma.Operation {
	return huma.Operation{Method: method, Path: path, OperationID: id, Tags: []string{tag}, Summary: summary}
}
