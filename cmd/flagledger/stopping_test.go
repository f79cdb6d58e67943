package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

// heldOpen is a little less than the time for which a stopping server holds idle connections open, with a drain of 5 s.
const heldOpen = 4 * time.Second

// callers are clients that evaluate a flag repeatedly, each on its own connection, which it reuses while the server
// allows.
type callers struct {
	url      string
	as       *nodetest.Client
	ended    chan struct{} // closed to end them; they also end when no server listens on the URL
	running  sync.WaitGroup
	answered atomic.Int64

	mu   sync.Mutex
	lost []string
}

// startCallers starts 200 callers of a flag k. Half of them pause between calls.
func startCallers(as *nodetest.Client, url string) *callers {
	c := &callers{url: url, as: as, ended: make(chan struct{})}
	for i := range 200 {
		c.running.Go(func() { c.run(i%2 == 1) })
	}
	return c
}

func (c *callers) run(pausing bool) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	idleSince := time.Now()
	for {
		sent, err := c.call(client)
		idle := sent.Sub(idleSince)
		idleSince = time.Now()
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case idle > heldOpen && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
			// the machine is so busy that the client itself was stopped for that long
		case err != nil:
			c.mu.Lock()
			c.lost = append(c.lost, err.Error())
			c.mu.Unlock()
		default:
			c.answered.Add(1)
		}
		pause := time.Duration(0)
		if pausing {
			pause = rand.N(200 * time.Millisecond)
		}
		select {
		case <-c.ended:
			return
		case <-time.After(pause):
		}
	}
}

// call returns when the request was sent, or a time before that if it was not.
func (c *callers) call(client *http.Client) (time.Time, error) {
	began := time.Now()
	var took atomic.Int64
	sent := func() time.Time { return began.Add(time.Duration(took.Load())) }
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { took.Store(int64(time.Since(began))) }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(c.as.Service.T.Context(), trace), http.MethodPost,
		c.url+nodetest.FlagPath("k", "/evaluate"), strings.NewReader(`{}`))
	if err != nil {
		return sent(), err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.as.Token)
	r.Header.Set("X-Tenant-ID", c.as.Tenant)
	answer, err := client.Do(r)
	if err != nil {
		return sent(), err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", answer.StatusCode, body)
	}
	return sent(), err
}

// more waits until that many further calls were answered.
func (c *callers) more(n int64) {
	c.as.Service.T.Helper()
	want := c.answered.Load() + n
	c.as.Service.Eventually("calls are answered", func() bool { return c.answered.Load() >= want })
}

// lostNone checks that each call was answered.
func (c *callers) lostNone() {
	c.as.Service.T.Helper()
	c.running.Wait()
	if len(c.lost) > 0 {
		c.as.Service.T.Errorf("%d of %d calls are lost, the first with %s", len(c.lost), c.answered.Load()+int64(len(c.lost)),
			c.lost[0])
	}
}

// One process serves at a time, and each is stopped while all clients call. A client that finds no listener has not
// started a call.
func TestStoppingServerLosesNoCall(t *testing.T) {
	t.Parallel()
	p := nodetest.Build(t)
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t), "FLAGLEDGER_DRAIN=5s"}
	running := p.Serve(settings...)
	me := p.Service().SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	var answered int64
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		c := startCallers(me, p.Service().URL)
		c.more(1000)
		for range 2 - min(1, int(signal-syscall.SIGHUP)) { // a closed terminal sends SIGHUP twice
			if err := running.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		me.Service.Eventually("it says that it is stopping, on a connection that it closes", func() bool {
			a := me.Service.Anonymous().Attempt("GET", "/health", "")
			return a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, `"status":"stopping"`)
		})
		<-running.Exited
		if code := running.ProcessState.ExitCode(); code != 0 {
			t.Errorf("after %v it ended with code %d", signal, code)
		}
		c.lostNone()
		answered += c.answered.Load()
		running = p.Serve(settings...)
	}
	evaluations := func() float64 {
		a := me.Call("GET", "/api/v1/flags/k/metrics?interval=day", nil)
		if a.Status != http.StatusOK { // its read models may not be built yet
			return -1
		}
		return a.Object()["evaluations"].(float64)
	}
	me.Service.Eventually("the read models are there", func() bool { return evaluations() >= 0 })
	if n := evaluations(); n != float64(answered) {
		t.Errorf("%v evaluations are written down, and %d were answered", n, answered)
	}
}

// Two nodes behind nginx are restarted one after the other, as documented.
func TestRollingRestartLosesNoCall(t *testing.T) {
	t.Parallel()
	a := nodetest.Build(t)
	b := a.In(t)
	url := nodetest.Nginx(t, `
		location / {
			proxy_pass http://flagledger;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}`, fmt.Sprintf(`
		upstream flagledger {
			server %s fail_timeout=1s;
			server %s fail_timeout=1s;
			keepalive 64;
		}`, a.Addr, b.Addr))
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t), "FLAGLEDGER_PUBLIC_URL=" + url, "FLAGLEDGER_DRAIN=2s"}
	nodes := []*nodetest.Process{a.Serve(settings...), b.Serve(settings...)}
	behind := &nodetest.Service{T: t, URL: url}
	me := behind.SignUp(nodetest.Address())
	me.CreateFlag("k", nil)
	c := startCallers(me, url)
	c.more(1000)
	for _, n := range nodes {
		if code := n.End(syscall.SIGTERM); code != 0 {
			t.Errorf("it ended with code %d", code)
		}
		c.more(1000)
		n.Program.Serve(settings...)
		c.more(1000)
	}
	close(c.ended)
	c.lostNone()
}

// A second signal ends a server that would still serve for a minute.
func TestSecondSignalEndsServerAtOnce(t *testing.T) {
	t.Parallel()
	p := nodetest.Build(t)
	running := p.Serve("FLAGLEDGER_DATABASE_URL="+pgtest.URL(t), "FLAGLEDGER_DRAIN=1h")
	if err := running.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.Service().Eventually("it is stopping", func() bool {
		return p.Service().Anonymous().Attempt("GET", "/health", "").Status == http.StatusServiceUnavailable
	})
	if code := running.End(syscall.SIGTERM); code == 0 {
		t.Error("it ended in order")
	}
}

// The process that reads the log often gets the signal too, and ends first.
func TestServerOutlivesReaderOfItsLog(t *testing.T) {
	t.Parallel()
	p := nodetest.Build(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	running := &nodetest.Process{
		Cmd:     p.Command([]string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t)}),
		Program: p,
		Exited:  make(chan struct{}),
	}
	running.Stdout, running.Stderr = write, write
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	go func() {
		_ = running.Wait()
		close(running.Exited)
	}()
	t.Cleanup(running.Kill)
	_ = read.Close()
	healthy := func() bool { return p.Service().Anonymous().Attempt("GET", "/health", "").Status == http.StatusOK }
	p.Service().Eventually("it is healthy", healthy)
	if code := running.End(syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
}
