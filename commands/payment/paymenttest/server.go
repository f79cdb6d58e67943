// Package paymenttest is a small Stripe for tests: an HTTP server on loopback with state, signed events and simulated
// failures. It refuses what Stripe refuses of the calls that the service makes.
package paymenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// The credentials of the account.
const (
	SecretKey     = "sk_test_flagledger" //nolint:gosec // no real account
	WebhookSecret = "whsec_flagledger"   //nolint:gosec // no real account
)

// Server is an account at Stripe. It is safe for concurrent use.
type Server struct {
	t    testing.TB
	http *httptest.Server
	now  func() time.Time

	mu            sync.Mutex
	broken        Failure
	ended         chan struct{} // closed when the server stops, to end hanging calls
	next          int
	calls         []Call
	prices        map[string]string // interval by price
	portalPrices  map[string]bool   // prices offered by the portal
	products      map[string]bool
	coupons       map[string]bool
	promotions    map[string]string // id by code
	customers     map[string]*customer
	subscriptions []*subscription // the newest last
	pages         map[string]*page
	answers       map[string]answer // by Idempotency-Key
	events        []Event
}

// Call is a received call.
type Call struct {
	Method, Path string
	Form         url.Values
	Key          string // its Idempotency-Key
}

// Failure is a kind of failure.
type Failure string

// The kinds of failure.
const (
	Working   Failure = ""
	Down      Failure = "down"         // connections are closed
	Hanging   Failure = "hanging"      // no response
	Garbage   Failure = "garbage"      // 200 with an HTML page
	Empty     Failure = "empty"        // 200 with unrelated JSON
	Strange   Failure = "strange"      // 200 with lists of null
	Busy      Failure = "busy"         // 429
	Failing   Failure = "failing"      // 500
	Recorded  Failure = "recorded"     // 500, also for later calls with the same Idempotency-Key
	Forbidden Failure = "unauthorized" // 401
)

type answer struct {
	status  int
	body    map[string]any
	request string // must be equal for the same key
}

// New starts an account that is removed after the test. now returns the time, also of signatures.
func New(t testing.TB, now func() time.Time) *Server {
	t.Helper()
	s := &Server{
		t:            t,
		now:          now,
		ended:        make(chan struct{}),
		prices:       map[string]string{},
		portalPrices: map[string]bool{},
		products:     map[string]bool{},
		coupons:      map[string]bool{},
		promotions:   map[string]string{},
		customers:    map[string]*customer{},
		pages:        map[string]*page{},
		answers:      map[string]answer{},
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.ended)
		s.http.Close()
	})
	return s
}

// Clock returns a clock at the start of a ten-minute period, in which the service sends the same Idempotency-Key for
// the same action: a test that counts calls or pages ends before the period does. The clock is at most a second ahead
// of the machine's.
func Clock() func() time.Time {
	now := time.Now()
	ahead := now.Truncate(10 * time.Minute).Add(time.Second).Sub(now)
	return func() time.Time { return time.Now().Add(ahead) }
}

// URL returns the address of the API.
func (s *Server) URL() string { return s.http.URL }

// AddPrice adds a monthly or yearly price that customers may switch to.
func (s *Server) AddPrice(id, interval string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prices[id], s.portalPrices[id] = interval, true
}

// ForbidSwitch forbids customers to switch to a price.
func (s *Server) ForbidSwitch(price string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.portalPrices, price)
}

// AddProduct adds a product.
func (s *Server) AddProduct(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.products[id] = true
}

// AddCoupon adds a coupon.
func (s *Server) AddCoupon(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coupons[id] = true
}

// AddPromotion adds a promotion code and returns its id.
func (s *Server) AddPromotion(code string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promotions[strings.ToLower(code)] = s.id("promo")
	return s.promotions[strings.ToLower(code)]
}

// AddCustomer adds a customer with metadata.
func (s *Server) AddCustomer(metadata map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newCustomer(metadata).ID
}

// Break makes all later calls fail; Working ends the failure.
func (s *Server) Break(how Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = how
}

// Now returns the time of the account's clock.
func (s *Server) Now() time.Time { return s.now() }

// Calls lists the calls with a method and a path, in order.
func (s *Server) Calls(method, path string) (list []Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.Method == method && c.Path == path {
			list = append(list, c)
		}
	}
	return list
}

func (s *Server) id(prefix string) string {
	s.next++
	return fmt.Sprintf("%s_%06d", prefix, s.next)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	if r.Method == http.MethodGet {
		form = r.URL.Query()
	}
	s.mu.Lock()
	broken := s.broken
	s.calls = append(s.calls, Call{r.Method, r.URL.Path, form, r.Header.Get("Idempotency-Key")})
	s.mu.Unlock()
	if broken == Recorded && r.Method == http.MethodPost {
		s.mu.Lock()
		s.answers[r.Header.Get("Idempotency-Key")] = answer{
			http.StatusInternalServerError,
			problem("api_error", "", ""),
			identity(r, string(body)),
		}
		s.mu.Unlock()
	}
	if broken != Working {
		s.fail(w, r, broken)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+SecretKey {
		write(w, http.StatusUnauthorized, problem("invalid_request_error", "", ""))
		return
	}
	s.mu.Lock()
	a := s.answer(r, form, string(body))
	s.mu.Unlock()
	write(w, a.status, a.body)
}

// answer responds to a call, with the earlier response if its Idempotency-Key is known.
func (s *Server) answer(r *http.Request, form url.Values, body string) answer {
	key, request := r.Header.Get("Idempotency-Key"), identity(r, body)
	if r.Method != http.MethodPost {
		key = ""
	}
	if before, known := s.answers[key]; known && key != "" {
		if before.request != request {
			return answer{status: http.StatusBadRequest, body: problem("idempotency_error", "", "")}
		}
		return before
	}
	a := answer{request: request}
	a.status, a.body = s.route(r.Method, r.URL.Path, form)
	if key != "" && a.status == http.StatusOK { // Stripe stores no response of a refused call
		s.answers[key] = a
	}
	return a
}

// identity returns what must be equal in all calls with the same Idempotency-Key.
func identity(r *http.Request, body string) string { return r.Method + r.URL.Path + "?" + body }

func (s *Server) fail(w http.ResponseWriter, r *http.Request, how Failure) {
	switch how {
	case Down:
		if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = connection.Close()
		}
	case Hanging:
		select {
		case <-s.ended:
		case <-r.Context().Done():
		}
	case Garbage:
		_, _ = io.WriteString(w, "<html>somebody@example.com is at lunch</html>")
	case Empty:
		_, _ = io.WriteString(w, "{}")
	case Strange:
		_, _ = io.WriteString(w,
			`{"object":"list","data":[null],"id":null,"url":"javascript:alert(1)","items":{"data":[null]},"customer":null}`)
	case Busy:
		write(w, http.StatusTooManyRequests, problem("invalid_request_error", "rate_limit", ""))
	case Failing, Recorded:
		write(w, http.StatusInternalServerError, problem("api_error", "", ""))
	case Forbidden:
		write(w, http.StatusUnauthorized, problem("invalid_request_error", "", ""))
	case Working:
	}
}

func write(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_test")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func problem(kind, code, param string) map[string]any {
	return map[string]any{
		"error": map[string]any{"type": kind, "code": code, "param": param, "message": "refused by the test"},
	}
}

func missing(status int, param string) (int, map[string]any) {
	return status, problem("invalid_request_error", "resource_missing", param)
}
