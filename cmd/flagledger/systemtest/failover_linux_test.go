package systemtest

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// A database that becomes read-only closes no connection.
func TestReadOnlyDatabaseRefusesChangesAndRecovers(t *testing.T) {
	t.Parallel()
	_, p := nodetest.OwnPostgres(t)
	s := nodetest.On(t, p.URL())
	c := personWithFlags(s)
	stop := keepEvaluating(t, c, map[string]string{"on": `"value":true`, "split": `"value":"A"`})
	defer stop()

	nodetest.Execute(t, p.URL(), "alter system set default_transaction_read_only = on", "select pg_reload_conf()")
	changesAreRefused(t, c)
	c.Call("GET", "/api/v1/flags", nil).Want(200)
	nodetest.Execute(t, p.URL(), "set default_transaction_read_only = off",
		"alter system reset default_transaction_read_only", "select pg_reload_conf()")
	recovers(c)
	stop()
}

// A standby is promoted while the old writer stays up, read-only, with all its connections.
func TestFailoverIsFollowedThoughConnectionsStay(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(t *testing.T, first, second *url.URL) (address string, failOver func()){
		"the URL names both hosts": func(_ *testing.T, first, second *url.URL) (string, func()) {
			return first.Host + "," + second.Host, func() {}
		},
		"a proxy leads to the new writer": func(t *testing.T, first, second *url.URL) (string, func()) {
			p := startProxy(t, first.Host)
			return p.address, func() { p.target.Store(&second.Host) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, primary := nodetest.OwnPostgres(t)
			standby := nodetest.Standby(t, primary)
			first, second, service := parse(t, primary.URL()), parse(t, standby), parse(t, primary.URL())
			var failOver func()
			service.Host, failOver = address(t, first, second)
			s := nodetest.On(t, service.String())
			c := personWithFlags(s)
			stop := keepEvaluating(t, c, map[string]string{"on": `"value":true`, "split": `"value":"A"`})
			defer stop()
			l := startLoad(c, 3)
			l.more(20)

			nodetest.Execute(t, primary.URL(), "alter system set default_transaction_read_only = on", "select pg_reload_conf()")
			changesAreRefused(t, c)
			nodetest.Execute(t, standby, "select pg_promote()")
			failOver()
			recovers(c)
			l.more(20)
			l.stop()
			stop()
			l.audit()
			old, current := connect(t, primary.URL()), connect(t, standby)
			const ours = `select application_name from pg_stat_activity where application_name like 'flagledger%' or query ilike '%listen%' and pid <> pg_backend_pid()`
			s.Eventually("no connection to the old writer is left", func() bool { return len(column[string](t, old, ours)) == 0 })
			if list := column[string](t, current, ours); len(list) < 4 {
				t.Errorf("the connections to the new writer are %q", list)
			}
		})
	}
}

func personWithFlags(s *nodetest.Service) *nodetest.Client {
	c := s.SignUp("me@example.com")
	c.CreateFlag("on", nil)
	c.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	c.CreateFlag("split",
		map[string]any{"type": "string", "flag_variations": []map[string]any{{"name": "a", "value": "A", "weight": 1}}})
	c.Call("POST", nodetest.FlagPath("split", "/enable"), nil).Want(200)
	return c
}

// changesAreRefused waits until health reports a read-only database, and checks that changes return 503.
func changesAreRefused(t *testing.T, c *nodetest.Client) {
	t.Helper()
	c.Service.Eventually("health says that the database takes no writes", func() bool {
		r := c.Attempt("GET", "/health", "")
		return r.Status == 200 && strings.Contains(r.Body, `"status":"degraded"`) &&
			strings.Contains(r.Body, "the database takes no writes")
	})
	for _, call := range [][3]string{
		{"POST", "/api/v1/flags", `{"key":"lost","type":"boolean"}`}, {"PATCH", nodetest.FlagPath("on"), `{"description":"lost"}`},
		{"POST", nodetest.FlagPath("on", "/disable"), ""}, {"POST", "/api/v1/projects", `{"name":"lost"}`},
	} {
		if r := c.Attempt(call[0], call[1], call[2]); r.Status != 503 || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %v", call[0], call[1], r)
		}
	}
}

// recovers waits until everything works.
func recovers(c *nodetest.Client) {
	s := c.Service
	s.T.Helper()
	s.Eventually("writes succeed", func() bool {
		return c.Attempt("POST", "/api/v1/flags", `{"key":"back","type":"boolean"}`).Status == 201 ||
			c.Attempt("GET", nodetest.FlagPath("back"), "").Status == 200
	})
	s.Eventually("health is good",
		func() bool { return strings.Contains(c.Attempt("GET", "/health", "").Body, `"status":"ok"`) })
	s.Eventually("what is new is evaluated",
		func() bool { return c.Attempt("POST", nodetest.FlagPath("back", "/evaluate"), `{}`).Status == 200 })
	c.CreateFlag("after", nil)
	c.Call("GET", nodetest.FlagPath("after"), nil).Want(200)
	c.Call("POST", "/auth/signin", map[string]string{"email": "me@example.com", "password": nodetest.Password}).Want(200)
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// proxy relays connections to a server that can be changed. Existing connections stay with their server.
type proxy struct {
	address string
	target  atomic.Pointer[string]
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &proxy{address: listener.Addr().String()}
	p.target.Store(&target)
	relay := func(from, to net.Conn) {
		_, _ = io.Copy(to, from)
		_ = from.Close()
		_ = to.Close()
	}
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", *p.target.Load())
			if err != nil {
				_ = caller.Close()
				continue
			}
			go relay(caller, server)
			go relay(server, caller)
		}
	}()
	return p
}
