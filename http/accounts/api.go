// Package accounts serves people and machines as themselves: sign-in, passwords, OAuth clients, evaluation keys,
// notifications, tours.
package accounts

import (
	"github.com/go-chi/chi/v5"

	"flagledger/commands/jobs"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/tours"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/commands/sandbox"
	"flagledger/http/rest"
)

// Options holds what accounts need.
type Options struct {
	Reclaimer *people.Reclaimer
	// SandboxSignUp creates sandboxes on request, and Links mails the links to them.
	SandboxSignUp *sandbox.SignUp
	Links         *jobs.Links
	Inbox         *inbox.Inbox
	// Notifications puts notifications into inboxes.
	Notifications *notify.Notifications
	Tours         *tours.Tours
}

// API serves accounts.
type API struct {
	*rest.Core
	Options
}

// New returns the operations of a core.
func New(core *rest.Core, o Options) *API { return &API{Core: core, Options: o} }

// AddOperations adds the operations to the router and the OpenAPI document.
func (a *API) AddOperations(r chi.Router) {
	a.Router.Get(rest.JWKSRoute, a.jwks)
	r.Post(rest.GrantRoute, a.issueToken)
	r.Post(rest.DeprecatedRoute(rest.LegacyGrantRoute, a.issueToken))
	a.addAuth()
	a.addOAuth()
	a.addEvaluationKeys()
	a.addNotifications()
	a.addProductTours()
	a.addSandboxSignUp()
	a.documentToken()
	a.documentJWKS()
}
