package paymenttest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"
)

// Customers on their pages, banks and time cause these changes. Each change creates events.

const month = 30 * 24 * time.Hour

// Pay completes a checkout and returns the id of the new subscription, or "" for a single payment.
func (s *Server) Pay(checkoutURL string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open(checkoutURL, false)
	p.Closed = true
	metadata := map[string]string{"flagledger_tenant": p.Form.Get("metadata[flagledger_tenant]")}
	session := map[string]any{
		"id":       p.ID,
		"object":   "checkout.session",
		"customer": p.Form.Get("customer"),
		"metadata": metadata,
	}
	if p.Form.Get("mode") == "payment" {
		s.tell("checkout.session.completed", session)
		return ""
	}
	sub := s.subscribe(p.Form.Get("customer"), p.Form.Get("line_items[0][price]"), map[string]string{
		"flagledger_tenant": p.Form.Get("subscription_data[metadata][flagledger_tenant]"),
	})
	s.tell("checkout.session.completed", session)
	return sub.ID
}

// Subscribe starts a subscription without metadata, as an operator can at Stripe.
func (s *Server) Subscribe(customerID, price string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribe(customerID, price, nil).ID
}

func (s *Server) subscribe(customerID, price string, metadata map[string]string) *subscription {
	now := s.now().UTC().Truncate(time.Second)
	sub := &subscription{
		ID:       s.id("sub"),
		Item:     s.id("si"),
		Customer: customerID,
		Price:    price,
		Status:   "active",
		Metadata: metadata,
		Begin:    now,
		End:      now.Add(month),
	}
	s.subscriptions = append(s.subscriptions, sub)
	s.tell("customer.subscription.created", sub.json(s.prices))
	s.invoice("invoice.paid", sub)
	return sub
}

// Confirm confirms the change of a portal page: another price, or the end of the subscription after its period.
func (s *Server) Confirm(portalURL string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open(portalURL, true)
	switch p.Form.Get("flow_data[type]") {
	case "subscription_update_confirm":
		sub := s.subscription(p.Form.Get("flow_data[subscription_update_confirm][subscription]"))
		sub.Price = p.Form.Get("flow_data[subscription_update_confirm][items][0][price]")
		s.updated(sub)
	case "subscription_cancel":
		sub := s.subscription(p.Form.Get("flow_data[subscription_cancel][subscription]"))
		sub.CancelAtEnd = true
		s.updated(sub)
	default:
		s.t.Fatalf("the page %s offers no change", portalURL)
	}
}

// Change changes a subscription.
func (s *Server) Change(id string, change func(*Subscription)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscription(id)
	edited := Subscription{
		Status:      sub.Status,
		Price:       sub.Price,
		CancelAtEnd: sub.CancelAtEnd,
		CancelAt:    sub.CancelAt,
		Begin:       sub.Begin,
		End:         sub.End,
	}
	change(&edited)
	sub.Status, sub.Price, sub.CancelAtEnd, sub.CancelAt = edited.Status, edited.Price, edited.CancelAtEnd, edited.CancelAt
	sub.Begin, sub.End = edited.Begin, edited.End
	s.updated(sub)
}

// Subscription holds the fields of a subscription that Change may change.
type Subscription struct {
	Status, Price string
	CancelAtEnd   bool
	CancelAt      time.Time // zero if it does not end
	Begin, End    time.Time
}

// FailPayment makes the renewal of a subscription fail.
func (s *Server) FailPayment(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscription(id)
	sub.Status = "past_due"
	s.invoice("invoice.payment_failed", sub)
	s.updated(sub)
}

// End cancels a subscription at once.
func (s *Server) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(s.subscription(id))
}

func (s *Server) end(sub *subscription) {
	sub.Status = "canceled"
	s.tell("customer.subscription.deleted", sub.json(s.prices))
}

// DeleteCustomer deletes a customer and their subscriptions.
func (s *Server) DeleteCustomer(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.customers[id]
	for _, sub := range s.subscriptions {
		if sub.Customer == id && sub.Status != "canceled" {
			s.end(sub)
		}
	}
	s.tell("customer.deleted", c.json())
	c.Deleted = true
}

// Payable reports whether a customer can pay on a page.
func (s *Server) Payable(checkoutURL string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pages[checkoutURL]
	return p != nil && !p.Portal && !p.Closed
}

// Status returns the status of a subscription.
func (s *Server) Status(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscription(id).Status
}

func (s *Server) open(url string, portal bool) *page {
	s.t.Helper()
	p := s.pages[url]
	if p == nil || p.Portal != portal || p.Closed {
		s.t.Fatalf("there is no such page, or it is closed: %s", url)
	}
	return p
}

func (s *Server) updated(sub *subscription) {
	s.tell("customer.subscription.updated", sub.json(s.prices))
}

func (s *Server) invoice(kind string, sub *subscription) {
	s.tell(kind, map[string]any{"id": s.id("in"), "object": "invoice", "customer": sub.Customer, "subscription": sub.ID})
}

// Event is a signed event.
type Event struct {
	Type    string
	Payload []byte
}

func (s *Server) tell(kind string, object map[string]any) {
	payload, err := json.Marshal(map[string]any{
		"id":          s.id("evt"),
		"object":      "event",
		"api_version": "2023-10-16",
		"created":     s.now().Unix(),
		"type":        kind,
		"data":        map[string]any{"object": object},
	})
	if err != nil {
		panic(err) // plain maps
	}
	s.events = append(s.events, Event{kind, payload})
}

// Events returns and removes the waiting events, in order.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.events
	s.events = nil
	return list
}

// Sign returns the signature of a payload at a time.
func Sign(payload []byte, at time.Time) string {
	return webhook.GenerateTestSignedPayload(
		&webhook.UnsignedPayload{Payload: payload, Secret: WebhookSecret, Timestamp: at},
	).Header
}

// Deliver sends an event to a webhook as Stripe does, and returns the response's status.
func (s *Server) Deliver(endpoint string, e Event) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, endpoint, bytes.NewReader(e.Payload))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Stripe-Signature", Sign(e.Payload, s.now()))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
