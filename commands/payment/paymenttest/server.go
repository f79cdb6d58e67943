// Package paymenttest is a small Stripe for tests: HTTP on loopback that keeps what it is told, tells of it in signed
// events, and breaks when asked to. It refuses what Stripe refuses of the calls that the service makes.
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
	SecretKey     = "sk_test_flagledger" //nolint:gosec // which no account of Stripe has
	WebhookSecret = "whsec_flagledger"   //nolint:gosec // likewise
)

// Server is an account at Stripe. It may be used by many goroutines at once.
type Server struct {
	t    testing.TB
	http *httptest.Server
	now  func() time.Time

	mu            sync.Mutex
	broken        Failure
	ended         chan struct{} // closed when the server ends, for calls that hang
	next          int
	calls         []Call
	prices        map[string]string // interval by price
	portalPrices  map[string]bool   // that the portal may switch to
	products      map[string]bool
	coupons       map[string]bool
	promotions    map[string]string // id by code
	customers     map[string]*customer
	subscriptions []*subscription // the newest last
	pages         map[string]*page
	answers       map[string]answer // by Idempotency-Key
	events        []Event
}

// Call is a call that the server has taken.
type Call struct {
	Method, Path string
	Form         url.Values
	Key          string // its Idempotency-Key
}

// Failure is a way to break.
type Failure string

// The ways to break.
const (
	Working   Failure = ""
	Down      Failure = "down"         // connections break off
	Hanging   Failure = "hanging"      // no answer
	Garbage   Failure = "garbage"      // 200 with a page
	Empty     Failure = "empty"        // 200 with JSON that is nothing of Stripe's
	Strange   Failure = "strange"      // 200 with lists of null
	Busy      Failure = "busy"         // 429
	Failing   Failure = "failing"      // 500
	Recorded  Failure = "recorded"     // 500, which is repeated for the Idempotency-Key later
	Forbidden Failure = "unauthorized" // 401
)

type answer struct {
	status  int
	body    map[string]any
	request string // what must be the same for the key
}

// New starts an account that ends with the test. now tells the time, which is also that of signatures.
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

// Clock is a clock on which ten minutes have just begun, during which the service sends the same Idempotency-Key for
// what is done once: a test that counts calls or pages is over before they are. It is at most a second ahead of the
// machine's.
func Clock() func() time.Time {
	now := time.Now()
	ahead := now.Truncate(10 * time.Minute).Add(time.Second).Sub(now)
	return func() time.Time { return time.Now().Add(ahead) }
}

// URL is the address of the API.
func (s *Server) URL() string { return s.http.URL }

// AddPrice adds a price that is paid every month or year, which customers may switch to.
func (s *Server) AddPrice(id, interval string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prices[id], s.portalPrices[id] = interval, true
}

// ForbidSwitch takes a price from those that customers may switch to.
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

// AddPromotion adds a promotion code, and returns its id.
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

// Break makes all further calls fail in a way; Working mends them.
func (s *Server) Break(how Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = how
}

// Now is the time on the clock of the account.
func (s *Server) Now() time.Time { return s.now() }

// Calls are the calls with a method and a path, in order.
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

// answer answers a call, as before where its Idempotency-Key is known.
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
	if key != "" && a.status == http.StatusOK { // Stripe keeps no answer to what it refuses
		s.answers[key] = a
	}
	return a
}

// identity is what must be the same of calls with one Idempotency-Key.
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
