package http

import (
	"errors"
	"io"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/http/strictjson"
)

const (
	webhookRoute    = "/api/v1/billing/webhook"
	signatureHeader = "Stripe-Signature"
	maxWebhook      = 256 << 10 // bytes; events of Stripe have a few thousand
)

// Why an event is not read. Nobody knows then whether Stripe has signed it.
var (
	errLargeEvent  = errors.New("the body is larger than 256 KiB")
	errUnreadEvent = errors.New(unreadBody)
)

// webhook takes in what Stripe tells of a change. It is no huma operation: the signature is over the body's bytes. What Stripe has signed is not limited;
// all else counts for the address that it came from, and is refused without a trace in the log.
func (a *API) webhook(w http.ResponseWriter, r *http.Request) {
	err := a.receive(r)
	for _, unsigned := range []error{commands.ErrSignature, errLargeEvent, errUnreadEvent} {
		if !errors.Is(err, unsigned) {
			continue
		}
		left := a.limiter.Address(r)
		left.Show(requestOf(r.Context()).answer)
		err = newProblem(http.StatusBadRequest, unsigned.Error())
		if left.Exceeded {
			err = tooManyRequests(left)
		}
		break
	}
	if errors.Is(err, commands.ErrUnreadableEvent) {
		err = newProblem(http.StatusBadRequest, commands.ErrUnreadableEvent.Error())
	}
	if err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = strictjson.Write(w, success{true})
}

func (a *API) receive(r *http.Request) error {
	signature := r.Header.Get(signatureHeader)
	if signature == "" {
		return commands.ErrSignature
	}
	if !a.Billing.Configured() {
		return newProblem(http.StatusServiceUnavailable, "payments are not configured")
	}
	payload, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxWebhook))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return errLargeEvent
	}
	if err != nil {
		return errUnreadEvent
	}
	return a.Billing.Receive(r.Context(), payload, signature)
}

// documentWebhook describes the webhook.
func (a *API) documentWebhook() {
	doc := a.huma.OpenAPI()
	op := operation("POST", webhookRoute, "receive-webhook", "Billing", "Take in an event of Stripe")
	op.Description = "Called by Stripe alone, which signs each event. The service then reads at Stripe what has changed: events may come late, repeatedly and in any order."
	op.Parameters = []*huma.Param{{
		Name: signatureHeader, In: "header", Required: true, Description: "Stripe's signature over the body, at most five minutes old",
		Schema: &huma.Schema{Type: huma.TypeString},
	}}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {
		Schema:  &huma.Schema{Type: huma.TypeObject, Description: "An event as Stripe describes it: https://docs.stripe.com/api/events"},
		Example: map[string]any{"id": "evt_1NG8Du2eZvKYlo2CUI79vXWy", "object": "event", "type": "customer.subscription.updated"},
	}}}
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeFor[success](), true, "")},
	}}}
	doc.AddOperation(&op)
}
