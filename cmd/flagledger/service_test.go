package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/events"
	"flagledger/events/eventstore/esdbtest"
	flagledgerhttp "flagledger/http"
	"flagledger/http/limit"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) {
	if role, ok := benchRoles[os.Getenv("FLAGLEDGER_BENCH_ROLE")]; ok {
		role()
		return
	}
	pgtest.Main(m)
}

// service is a running service over a database of its own.
type service struct {
	t           testing.TB
	url         string
	databaseURL string
	config      config
	node        *node
}

// newService starts a service that ends with the test.
func newService(t testing.TB) *service {
	t.Helper()
	return serviceOn(t, pgtest.URL(t))
}

// serviceOn starts a service over a database that may have been used before.
func serviceOn(t testing.TB, databaseURL string) *service {
	t.Helper()
	return serviceLogging(t, databaseURL, testLog(t))
}

// serviceLogging starts a service that writes to a log.
func serviceLogging(t testing.TB, databaseURL string, log *slog.Logger) *service {
	t.Helper()
	return serviceWith(t, databaseURL, config{EventStoreURL: engineURL(t), Environment: "development"}, log)
}

// engineURL is empty for the Postgres engine. With FLAGLEDGER_TEST_ENGINE=eventstore it is the connection string of the event store that
// FLAGLEDGER_TEST_EVENTSTORE_URL names, which all services of the run share, or else of one of the test's own.
func engineURL(t testing.TB) string {
	if os.Getenv("FLAGLEDGER_TEST_ENGINE") != "eventstore" {
		return ""
	}
	if url := os.Getenv("FLAGLEDGER_TEST_EVENTSTORE_URL"); url != "" {
		return url
	}
	return esdbtest.New(t).URL()
}

// generous limits stop no test.
var generous = limit.Limits{Plans: map[events.Plan]int{events.FreePlan: 1_000_000_000}, Anonymous: 1_000_000_000, Auth: 1_000_000_000}

// serviceWith starts a service over a database and an event store that may have been used before.
func serviceWith(t testing.TB, databaseURL string, c config, log *slog.Logger) *service {
	t.Helper()
	if err := prepare(t.Context(), databaseURL, log); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	url := "http://" + server.Listener.Addr().String()
	if c.PublicURL == "" {
		c.PublicURL = url
	}
	if c.limits.Anonymous == 0 {
		c.limits = generous
	}
	if c.streams.PerTenant == 0 {
		c.streams = flagledgerhttp.DefaultStreamLimits()
	}
	n, err := start(t.Context(), c, databaseURL, log)
	if err != nil {
		t.Fatal(err)
	}
	server.Config = n.api.Server()
	server.Start()
	t.Cleanup(func() {
		server.Close()
		n.stop()
	})
	s := &service{t: t, url: url, databaseURL: databaseURL, config: c, node: n}
	s.eventually("the service is healthy", func() bool {
		return strings.Contains(string(s.anonymous().call("GET", "/health", nil).body), `"status":"ok"`)
	})
	return s
}

// in is the service for a subtest, which fails by itself.
func (s *service) in(t testing.TB) *service {
	c := *s
	c.t = t
	return &c
}

// cases are subtests, by the behaviour that they show. They share a service and a person, and have a tenant each. They run one after another:
// were they parallel as the tests are, all services would be up at once, and Postgres out of connections.
type cases map[string]func(t *testing.T, me *client)

func (c cases) run(t *testing.T) {
	t.Parallel()
	owner := newService(t).signUp("owner@example.com")
	for name, test := range c {
		t.Run(name, func(t *testing.T) {
			me := *owner
			me.s = owner.s.in(t)
			test(t, me.newTenant(name))
		})
	}
}

// testLog shows the log of a service when FLAGLEDGER_TEST_LOG is set.
func testLog(t testing.TB) *slog.Logger {
	if os.Getenv("FLAGLEDGER_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// eventually waits for a condition, a minute at most.
func (s *service) eventually(what string, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// client makes calls with a token and a tenant, where it has them.
type client struct {
	s      *service
	token  string
	tenant string
	userID string
}

func (s *service) anonymous() *client { return &client{s: s} }

const password = "correct horse"

// signUp makes a person, who has a tenant of his own.
func (s *service) signUp(email string) *client {
	s.t.Helper()
	var session struct {
		Token string
		User  struct{ ID string }
	}
	s.anonymous().call("POST", "/auth/signup", map[string]string{"email": email, "password": password}).want(201).decode(&session)
	c := &client{s: s, token: session.Token, userID: session.User.ID}
	var tenants []struct{ ID string }
	c.call("GET", "/api/v1/tenants", nil).want(200).decode(&tenants)
	c.tenant = tenants[0].ID
	return c
}

// newTenant makes another tenant of the same person.
func (c *client) newTenant(name string) *client {
	c.s.t.Helper()
	other := *c
	other.tenant = c.call("POST", "/api/v1/tenants", map[string]string{"name": name}).want(201).object()["id"].(string)
	return &other
}

// secondNode is another node of the same service.
func (s *service) secondNode() *service {
	s.t.Helper()
	return serviceWith(s.t, s.databaseURL, s.config, testLog(s.t))
}

// store opens the event store of the service once more.
func (s *service) store() events.Store {
	s.t.Helper()
	store, closeStore, err := openStore(s.t.Context(), s.config, s.databaseURL, testLog(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(closeStore)
	return store
}

// join makes a new person a member of the client's tenant.
func (c *client) join(role events.Role) *client {
	c.s.t.Helper()
	email := address()
	member := c.s.signUp(email)
	member.tenant = c.tenant
	c.call("POST", "/api/v1/tenants/"+c.tenant+"/users", map[string]any{"email": email, "role": role}).want(201)
	return member
}

// machine is an OAuth client of the client's tenant, with a token for all of its scopes.
func (c *client) machine(scopes ...string) *client {
	c.s.t.Helper()
	id, secret := c.oauthClient("Machine", scopes...)
	m := &client{s: c.s, tenant: c.tenant, userID: id}
	m.token = m.trade("grant_type", "client_credentials", "client_id", id, "client_secret", secret).want(200).object()["access_token"].(string)
	return m
}

// oauthClient makes an OAuth client in the client's tenant.
func (c *client) oauthClient(name string, scopes ...string) (id, secret string) {
	c.s.t.Helper()
	body := c.call("POST", "/api/v1/oauth/clients", map[string]any{"name": name, "scopes": scopes}).want(201).object()
	return body["clientId"].(string), body["clientSecret"].(string)
}

// trade asks the token endpoint for a token, with a form of names and values.
func (c *client) trade(form ...string) *answer {
	c.s.t.Helper()
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return c.s.anonymous().call("POST", "/api/v1/oauth/token", values.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// address is an e-mail address that nobody else has.
func address() string { return strings.ToLower(rand.Text()) + "@example.com" }

// answer is what came back from a call.
type answer struct {
	t      testing.TB
	call   string
	status int
	header http.Header
	body   []byte
}

// call makes a call. A body that is a string or bytes is sent as it is, anything else as JSON. headers are pairs of name and value; an empty
// value leaves out a header that would be sent otherwise.
func (c *client) call(method, path string, body any, headers ...string) *answer {
	c.s.t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	case []byte:
		reader = bytes.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			c.s.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(c.s.t.Context(), method, c.s.url+path, reader)
	if err != nil {
		c.s.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.tenant != "" {
		r.Header.Set("X-Tenant-ID", c.tenant)
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		c.s.t.Fatal(err)
	}
	defer response.Body.Close()
	a := &answer{t: c.s.t, call: method + " " + path, status: response.StatusCode, header: response.Header}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		c.s.t.Fatal(err)
	}
	c.s.checkDocumented(a)
	return a
}

// want ends the test unless the answer has a status.
func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d, want %d: %s", a.call, a.status, status, a.body)
	}
	return a
}

func (a *answer) decode(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("%s: %v in %s", a.call, err, a.body)
	}
}

// object is the answer's body as a JSON object.
func (a *answer) object() (o map[string]any) {
	a.t.Helper()
	a.decode(&o)
	return o
}

// list is the answer's body as a JSON array of objects.
func (a *answer) list() (l []map[string]any) {
	a.t.Helper()
	a.decode(&l)
	return l
}

// json is the answer's body as any JSON.
func (a *answer) json() (v any) {
	a.t.Helper()
	a.decode(&v)
	return v
}

// raw is the spelling of a member of the answer's body.
func (a *answer) raw(name string) string {
	a.t.Helper()
	var members map[string]json.RawMessage
	a.decode(&members)
	return string(members[name])
}

// shows checks members of the answer's body.
func (a *answer) shows(want map[string]any) *answer {
	a.t.Helper()
	body := a.object()
	for name, value := range want {
		if diff := cmp.Diff(asJSON(a.t, value), body[name]); diff != "" {
			a.t.Errorf("%s: %s is wrong (-want +got):\n%s", a.call, name, diff)
		}
	}
	return a
}

// members checks that an object of an answer has exactly these members.
func members(t testing.TB, what string, object any, want ...string) {
	t.Helper()
	o, ok := object.(map[string]any)
	if got := slices.Sorted(maps.Keys(o)); !ok || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%s has the members %v, want %v", what, got, want)
	}
}

// column is a member of each entry of a list.
func column(list []map[string]any, name string) []any {
	values := make([]any, len(list))
	for i, entry := range list {
		values[i] = entry[name]
	}
	return values
}

// same checks a value, which may be of any type that has the same JSON.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func asJSON(t testing.TB, v any) (plain any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// refused checks that the answer is a well-formed problem with a status and exactly these fields in errors.
func (a *answer) refused(status int, fields ...string) *answer {
	a.t.Helper()
	a.want(status)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("%s: a problem of the type %q", a.call, got)
	}
	var p struct {
		Type, Title, Detail, Instance string
		Status                        int
		Errors                        map[string]string
	}
	a.decode(&p)
	if p.Status != status || p.Type == "" || p.Title == "" || p.Detail == "" || p.Instance != "urn:uuid:"+a.header.Get("X-Request-ID") {
		a.t.Errorf("%s: an incomplete problem: %s", a.call, a.body)
	}
	for _, field := range fields {
		if p.Errors[field] == "" {
			a.t.Errorf("%s: errors does not name %s: %s", a.call, field, a.body)
		}
	}
	if len(p.Errors) != len(fields) {
		a.t.Errorf("%s: errors names other fields than %v: %s", a.call, fields, a.body)
	}
	return a
}

// createFlag makes a flag of the given fields, beside a new key and the type boolean where they have none.
func (c *client) createFlag(key string, fields map[string]any) map[string]any {
	c.s.t.Helper()
	body := map[string]any{"key": key, "type": "boolean"}
	for name, value := range fields {
		body[name] = value
	}
	return c.call("POST", "/api/v1/flags", body).want(201).object()
}

func flagPath(key string, rest ...string) string {
	return fmt.Sprintf("/api/v1/flags/%s%s", key, strings.Join(rest, ""))
}
