package paymenttest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

type customer struct {
	ID       string
	Metadata map[string]string
	Deleted  bool
}

type subscription struct {
	ID, Item, Customer, Price, Status string
	Metadata                          map[string]string
	Begin, End                        time.Time
	CancelAtEnd                       bool
	CancelAt                          time.Time // zero if it does not end
}

// page is a page for customers.
type page struct {
	ID, URL string
	Created int64
	Form    url.Values
	Portal  bool
	Closed  bool // paid or expired
}

func (s *Server) route(method, path string, form url.Values) (int, map[string]any) {
	id := path[strings.LastIndex(path, "/")+1:]
	switch {
	case method == http.MethodPost && path == "/v1/customers":
		return http.StatusOK, s.newCustomer(map[string]string{"flagledger_tenant": form.Get("metadata[flagledger_tenant]")}).
			json()
	case method == http.MethodGet && path == "/v1/customers/"+id:
		if c := s.customers[id]; c != nil {
			return http.StatusOK, c.json()
		}
		return missing(http.StatusNotFound, "id")
	case method == http.MethodGet && path == "/v1/subscriptions":
		return s.list(form.Get("customer"))
	case method == http.MethodGet && path == "/v1/subscriptions/"+id:
		if sub := s.subscription(id); sub != nil {
			return http.StatusOK, sub.json(s.prices)
		}
		return missing(http.StatusNotFound, "id")
	case method == http.MethodDelete && path == "/v1/subscriptions/"+id:
		sub := s.subscription(id)
		if sub == nil || sub.Status == "canceled" {
			return missing(http.StatusNotFound, "id")
		}
		s.end(sub)
		return http.StatusOK, sub.json(s.prices)
	case method == http.MethodGet && path == "/v1/promotion_codes":
		data := []any{}
		if promotion := s.promotions[strings.ToLower(form.Get("code"))]; promotion != "" {
			data = append(data, map[string]any{"id": promotion, "object": "promotion_code", "active": true})
		}
		return http.StatusOK, map[string]any{"object": "list", "url": "/v1/promotion_codes", "data": data}
	case method == http.MethodPost && path == "/v1/checkout/sessions":
		return s.checkout(form)
	case method == http.MethodGet && path == "/v1/checkout/sessions":
		return s.checkouts(form.Get("customer"))
	case method == http.MethodPost && strings.HasPrefix(path, "/v1/checkout/sessions/") && id == "expire":
		return s.expire(strings.TrimSuffix(strings.TrimPrefix(path, "/v1/checkout/sessions/"), "/expire"))
	case method == http.MethodPost && path == "/v1/billing_portal/sessions":
		return s.portal(form)
	}
	return http.StatusNotFound, problem("invalid_request_error", "", "")
}

func (s *Server) newCustomer(metadata map[string]string) *customer {
	c := &customer{ID: s.id("cus"), Metadata: metadata}
	s.customers[c.ID] = c
	return c
}

func (c *customer) json() map[string]any {
	if c.Deleted {
		return map[string]any{"id": c.ID, "object": "customer", "deleted": true}
	}
	return map[string]any{"id": c.ID, "object": "customer", "metadata": c.Metadata}
}

func (s *Server) usable(customerID string) bool {
	c := s.customers[customerID]
	return c != nil && !c.Deleted
}

func (s *Server) subscription(id string) *subscription {
	for _, sub := range s.subscriptions {
		if sub.ID == id {
			return sub
		}
	}
	return nil
}

func (sub *subscription) json(prices map[string]string) map[string]any {
	var cancelAt any
	if !sub.CancelAt.IsZero() {
		cancelAt = sub.CancelAt.Unix()
	}
	return map[string]any{
		"id":                   sub.ID,
		"object":               "subscription",
		"customer":             sub.Customer,
		"status":               sub.Status,
		"metadata":             sub.Metadata,
		"current_period_start": sub.Begin.Unix(),
		"current_period_end":   sub.End.Unix(),
		"cancel_at_period_end": sub.CancelAtEnd,
		"cancel_at":            cancelAt,
		"items": map[string]any{"object": "list", "data": []any{
			map[string]any{
				"id":     sub.Item,
				"object": "subscription_item",
				"price": map[string]any{
					"id":        sub.Price,
					"object":    "price",
					"recurring": map[string]any{"interval": prices[sub.Price], "interval_count": 1},
				},
			},
		}},
	}
}

func (s *Server) list(customerID string) (int, map[string]any) {
	if s.customers[customerID] == nil {
		return missing(http.StatusBadRequest, "customer")
	}
	data := []any{}
	for _, sub := range slices.Backward(s.subscriptions) {
		if sub.Customer == customerID {
			data = append(data, sub.json(s.prices))
		}
	}
	return http.StatusOK, map[string]any{"object": "list", "url": "/v1/subscriptions", "data": data, "has_more": false}
}

func (s *Server) checkout(form url.Values) (int, map[string]any) {
	line, discount := "line_items[0]", "discounts[0]"
	coupon, promotion := form.Get(discount+"[coupon]"), form.Get(discount+"[promotion_code]")
	switch {
	case !s.usable(form.Get("customer")):
		return missing(http.StatusBadRequest, "customer")
	case form.Get("mode") == "subscription" && s.prices[form.Get(line+"[price]")] == "":
		return missing(http.StatusBadRequest, line+"[price]")
	case form.Get("mode") == "payment" && !s.products[form.Get(line+"[price_data][product]")]:
		return missing(http.StatusBadRequest, line+"[price_data][product]")
	case form.Get("mode") == "payment" && len(form.Get(line+"[price_data][unit_amount]")) < 2:
		return http.StatusBadRequest, problem("invalid_request_error", "amount_too_small", "")
	case coupon != "" && !s.coupons[coupon]:
		return missing(http.StatusBadRequest, discount+"[coupon]")
	case promotion != "" && !s.hasPromotion(promotion):
		return missing(http.StatusBadRequest, discount+"[promotion_code]")
	}
	return http.StatusOK, s.newPage("cs", "/c/pay/", "checkout.session", form, false)
}

// checkouts lists the open payment pages of a customer.
func (s *Server) checkouts(customerID string) (int, map[string]any) {
	if s.customers[customerID] == nil {
		return missing(http.StatusBadRequest, "customer")
	}
	data := []any{}
	for _, p := range s.pages {
		if !p.Portal && !p.Closed && p.Form.Get("customer") == customerID {
			data = append(
				data,
				map[string]any{
					"id":      p.ID,
					"object":  "checkout.session",
					"status":  "open",
					"mode":    p.Form.Get("mode"),
					"created": p.Created,
				},
			)
		}
	}
	return http.StatusOK, map[string]any{"object": "list", "url": "/v1/checkout/sessions", "data": data, "has_more": false}
}

func (s *Server) expire(id string) (int, map[string]any) {
	for _, p := range s.pages {
		if p.ID != id || p.Portal {
			continue
		}
		if p.Closed {
			return http.StatusBadRequest, problem("invalid_request_error", "", "")
		}
		p.Closed = true
		return http.StatusOK, map[string]any{"id": p.ID, "object": "checkout.session", "status": "expired"}
	}
	return missing(http.StatusNotFound, "session")
}

func (s *Server) hasPromotion(id string) bool {
	for _, known := range s.promotions {
		if known == id {
			return true
		}
	}
	return false
}

func (s *Server) portal(form url.Values) (int, map[string]any) {
	const confirm = "flow_data[subscription_update_confirm]"
	subscribed := form.Get(confirm + "[subscription]")
	if form.Get("flow_data[type]") == "subscription_cancel" {
		subscribed = form.Get("flow_data[subscription_cancel][subscription]")
	}
	if !s.usable(form.Get("customer")) {
		return missing(http.StatusBadRequest, "customer")
	}
	if form.Get("flow_data[type]") != "" {
		sub := s.subscription(subscribed)
		changes := form.Get("flow_data[type]") == "subscription_update_confirm"
		price := form.Get(confirm + "[items][0][price]")
		switch {
		case sub == nil || sub.Customer != form.Get("customer") || sub.Status == "canceled":
			return missing(http.StatusBadRequest, "flow_data[subscription]")
		case changes && (sub.Item != form.Get(confirm+"[items][0][id]") || price == sub.Price || !s.portalPrices[price]):
			return http.StatusBadRequest, problem("invalid_request_error", "", "")
		}
	}
	return http.StatusOK, s.newPage("bps", "/p/session/", "billing_portal.session", form, true)
}

func (s *Server) newPage(prefix, path, object string, form url.Values, portal bool) map[string]any {
	p := &page{ID: s.id(prefix), Created: s.now().Unix(), Form: form, Portal: portal}
	p.URL = s.http.URL + path + p.ID
	s.pages[p.URL] = p
	return map[string]any{"id": p.ID, "object": object, "url": p.URL, "created": p.Created}
}
