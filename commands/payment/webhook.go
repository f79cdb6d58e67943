package payment

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"flagledger/commands"
	"flagledger/commands/billing"
)

// signatureTTL limits the difference between the time of a signature and now.
const signatureTTL = 5 * time.Minute

// event is the part of a Stripe event that is read.
type event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Account string `json:"account"` // of a connected account
	Data    struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// object is the part of an event's object that is read.
type object struct {
	ID       string            `json:"id"`
	Customer string            `json:"customer"`
	Metadata map[string]string `json:"metadata"`
}

// Event implements billing.Payments. A signature is an HMAC-SHA256 over its time and the payload
// (https://docs.stripe.com/webhooks#verify-manually).
func (s *Stripe) Event(payload []byte, signature string, now time.Time) (billing.PaymentEvent, error) {
	signed, err := signedAt(signature)
	if err != nil {
		return billing.PaymentEvent{}, err
	}
	if age := now.Sub(signed); age > signatureTTL || age < -signatureTTL {
		return billing.PaymentEvent{}, fmt.Errorf("%w: its time is %v away", billing.ErrSignature, age.Round(time.Second))
	}
	if s.settings.WebhookSecret == "" {
		return billing.PaymentEvent{}, &commands.Error{
			Kind:   commands.Unavailable,
			Detail: "messages of the payment provider are not configured",
		}
	}
	if err := webhook.ValidatePayloadIgnoringTolerance(payload, signature, s.settings.WebhookSecret); err != nil {
		return billing.PaymentEvent{}, billing.ErrSignature
	}
	var e event
	if err := json.Unmarshal(payload, &e); err != nil || e.ID == "" {
		return billing.PaymentEvent{}, billing.ErrUnreadableEvent
	}
	if strings.ContainsRune(e.ID, 0) {
		return billing.PaymentEvent{}, fmt.Errorf("%w: its id contains the character NUL", billing.ErrUnreadableEvent)
	}
	found := billing.PaymentEvent{ID: e.ID}
	about := func(prefix string) bool { return e.Account == "" && strings.HasPrefix(e.Type, prefix) }
	if !about("customer.deleted") && !about("customer.subscription.") && !about("checkout.session.") &&
		!about("invoice.") {
		return found, nil
	}
	var o object
	if err := json.Unmarshal(e.Data.Object, &o); err != nil {
		return billing.PaymentEvent{}, fmt.Errorf("%w: its object is missing", billing.ErrUnreadableEvent)
	}
	found.CustomerID, found.TenantID = o.Customer, o.Metadata[tenantKey]
	if about("customer.deleted") {
		found.CustomerID = o.ID
	}
	if strings.ContainsRune(found.CustomerID+found.TenantID, 0) {
		return billing.PaymentEvent{}, fmt.Errorf("%w: its object contains the character NUL", billing.ErrUnreadableEvent)
	}
	return found, nil
}

// signedAt returns the time of a signature, such as t=1492774577,v1=5257a869e7ec.
func signedAt(signature string) (time.Time, error) {
	var seconds []string
	for part := range strings.SplitSeq(signature, ",") {
		if text, ok := strings.CutPrefix(part, "t="); ok {
			seconds = append(seconds, text)
		}
	}
	if len(seconds) != 1 {
		return time.Time{}, billing.ErrSignature
	}
	n, err := strconv.ParseInt(seconds[0], 10, 64)
	if err != nil {
		return time.Time{}, billing.ErrSignature
	}
	return time.Unix(n, 0), nil
}
