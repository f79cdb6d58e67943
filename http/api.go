// Package http is the REST interface: huma operations on a chi router. Each package of resources has one file per
// resource, and rest has what they share.
package http

import (
	"time"

	"github.com/go-chi/chi/v5"

	"flagledger/commands/billing"
	"flagledger/commands/keep/checkpoints"
	"flagledger/commands/keep/salts"
	"flagledger/http/accounts"
	"flagledger/http/audit"
	httpbilling "flagledger/http/billing"
	"flagledger/http/evaluation"
	"flagledger/http/flagd"
	"flagledger/http/flags"
	"flagledger/http/rest"
	"flagledger/http/segments"
	"flagledger/http/tenants"
)

// Version is the version of the interface.
const Version = "1.0.0"

// Options holds the parts and settings of the interface.
type Options struct {
	rest.Options
	Accounts    accounts.Options
	Tenants     tenants.Options
	Evaluation  evaluation.Options
	Billing     *billing.Billing
	Checkpoints *checkpoints.Checkpoints
	Salts       *salts.Salts // of private segments

	// StaleAfter is the time without evaluation or change after which a flag is unused or settled.
	StaleAfter time.Duration
	Features   Features
	Build      string // the build's number
	// LoopbackMetrics serves the metrics at /metrics, to clients on the same machine alone.
	LoopbackMetrics bool
	// Troubles lists failures that do not stop evaluation; it is empty if there are none.
	Troubles func() []string
	// Status returns this node's view of the service, for operators.
	Status func() ServiceStatus
}

// API serves the interface.
type API struct {
	*rest.Core
	Evaluation *evaluation.API
	Flagd      *flagd.API

	options     Options
	accounts    *accounts.API
	tenants     *tenants.API
	openAPIText func() []byte // the OpenAPI document
}

// New builds the interface.
func New(o Options) *API {
	core := rest.New(o.Options)
	a := &API{
		Core:       core,
		Evaluation: evaluation.New(core, o.Evaluation),
		Flagd:      flagd.New(core, o.Evaluation.Changes),
		options:    o,
		accounts:   accounts.New(core, o.Accounts),
		tenants:    tenants.New(core, o.Tenants),
	}
	a.Router.Use(a.leadToDashboard)
	a.Router.Get("/health", a.health)
	if o.LoopbackMetrics {
		addMetrics(core)
	}
	a.addDocs()
	a.addDashboard()
	a.accounts.AddPages()
	a.AddOperations(openAPIConfig(a.PublicURL), func(r chi.Router) {
		a.addSystem()
		a.addLegacy()
		a.addFeatures()
		a.addPlatform()
		a.addServiceStatus()
		a.addLegacyPlatform()
		a.accounts.AddOperations(r)
		a.tenants.AddOperations()
		httpbilling.New(core, o.Billing).AddOperations(r)
		flags.New(core, o.StaleAfter).AddOperations()
		segments.New(core, o.Salts).AddOperations()
		audit.New(core, o.Checkpoints).AddOperations()
		a.Evaluation.AddOperations(r)
		a.Flagd.AddOperations(r)
	})
	rest.CheckLegacyRoutes(a.Huma.OpenAPI())
	a.publish()
	return a
}
