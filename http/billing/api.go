// Package billing serves plans, payments and the events of the payment provider.
package billing

import (
	"github.com/go-chi/chi/v5"

	"flagledger/commands/billing"
	"flagledger/http/rest"
)

// API serves billing.
type API struct {
	*rest.Core
	Billing *billing.Billing
}

// New returns the operations of a core.
func New(core *rest.Core, billing *billing.Billing) *API { return &API{core, billing} }

// AddOperations adds the operations to the router and the OpenAPI document.
func (a *API) AddOperations(r chi.Router) {
	r.Post(rest.WebhookRoute, a.webhook)
	a.addBilling()
	a.addCheckout()
	a.documentWebhook()
}
