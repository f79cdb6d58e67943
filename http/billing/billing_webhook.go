package billing

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/commands/billing"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
)

const (
	signatureHeader = "Stripe-Signature"
	maxWebhook      = 256 << 10 // bytes; Stripe's events have a few thousand
)

// webhook receives an event of Stripe. It is not a huma operation, as the signature covers the raw body.
func (a *API) webhook(w http.ResponseWriter, r *http.Request) {
	if err := a.receive(r); err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = strictjson.Write(w, rest.Success{Success: true})
}

func (a *API) receive(r *http.Request) error {
	event, err := a.readEvent(r)
	switch {
	case errors.Is(err, billing.ErrUnreadableEvent):
		return rest.NewProblem(http.StatusBadRequest, billing.ErrUnreadableEvent.Error())
	case err != nil:
		if left := a.Limiter.Peek(r); left.Exceeded {
			return rest.TooManyRequests(left, "")
		}
		return err
	}
	rest.RequestOf(r.Context()).Unsigned = false
	return a.Billing.Receive(r.Context(), event)
}

// readEvent reads an event and verifies Stripe's signature. Errors other than ErrUnreadableEvent are problems, so that
// requests of unknown callers are not logged.
func (a *API) readEvent(r *http.Request) (event billing.PaymentEvent, err error) {
	refused := func(text string) (billing.PaymentEvent, error) {
		return event, rest.NewProblem(http.StatusBadRequest, text)
	}
	signature := r.Header.Get(signatureHeader)
	if signature == "" {
		return refused(billing.ErrSignature.Error())
	}
	if !a.Billing.Configured() {
		return event, rest.NewProblem(http.StatusServiceUnavailable, "payments are not configured")
	}
	var payload bytes.Buffer
	slot, err := a.ReadBody(r, &rest.Principal{Credential: rest.NoCredential}, &payload)
	if err != nil {
		return event, err
	}
	if slot != nil {
		defer slot.Leave()
	}
	if payload.Len() > maxWebhook {
		return refused("the body is larger than " + events.SizeText(maxWebhook))
	}
	event, err = a.Billing.ReadEvent(payload.Bytes(), signature)
	if unavailable, ok := errors.AsType[*commands.Error](err); ok {
		return event, rest.NewProblem(http.StatusServiceUnavailable, unavailable.Detail)
	}
	if errors.Is(err, billing.ErrSignature) {
		return refused(billing.ErrSignature.Error())
	}
	return event, err
}

// documentWebhook describes the webhook.
func (a *API) documentWebhook() {
	doc := a.Huma.OpenAPI()
	op := rest.Operation("POST", rest.WebhookRoute, "receive-webhook", "Billing", "Receive an event of Stripe")
	op.Description = "Only Stripe calls it, and signs each event. The service then reads the current state from Stripe, " +
		"because events may arrive late, repeatedly and in any order."
	op.Parameters = []*huma.Param{
		{
			Name:        signatureHeader,
			In:          "header",
			Required:    true,
			Description: "Stripe's signature over the body, a few minutes old at most",
			Schema:      &huma.Schema{Type: huma.TypeString},
		},
	}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {
		Schema: &huma.Schema{
			Type:        huma.TypeObject,
			Description: "An event as Stripe describes it: https://docs.stripe.com/api/events",
		},
		Example: map[string]any{
			"id":     "evt_1NG8Du2eZvKYlo2CUI79vXWy",
			"object": "event",
			"type":   "customer.subscription.updated",
		},
	}}}
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeFor[rest.Success](), true, "")},
	}}}
	doc.AddOperation(&op)
}
