package nodetest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// FaultyProvider is a proxy between a node and an external provider such as Stripe. It simulates the provider's
// failures.
type FaultyProvider struct {
	URL  string // of an HTTP proxy
	Addr string

	mu     sync.Mutex
	fault  Fault
	call   string        // the failing call, such as "POST /v1/customers"; empty for all
	mended chan struct{} // closed when the fault ends
	failed atomic.Int64
}

// Fault is a kind of failure.
type Fault string

// The kinds of failure.
const (
	Down       Fault = "down"        // connections are closed
	Hanging    Fault = "hanging"     // no response for 30 s
	Garbage    Fault = "garbage"     // the response is an HTML page
	Busy       Fault = "busy"        // 429, or 421 of SMTP
	AnswerLost Fault = "answer lost" // the call succeeds, and the connection is closed before the response
	AnswerLate Fault = "answer late" // the call succeeds, and the response is 30 s late; only over HTTP
)

// Faults lists the failures that any provider may have.
var Faults = []Fault{Down, Hanging, Garbage, Busy, AnswerLost}

const (
	hangsFor    = 30 * time.Second
	garbagePage = "<html>somebody@example.com is at lunch</html>"
)

// Break makes all later calls fail, until Mend.
func (o *FaultyProvider) Break(f Fault) { o.BreakCall("", f) }

// BreakCall makes a single HTTP call, such as "POST /v1/customers", fail until Mend.
func (o *FaultyProvider) BreakCall(call string, f Fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault, o.call, o.mended = f, call, make(chan struct{})
	o.failed.Store(0)
}

// Mend ends the fault and the hanging calls.
func (o *FaultyProvider) Mend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault != "" {
		close(o.mended)
	}
	o.fault = ""
}

// Failed returns the number of failed calls since Break.
func (o *FaultyProvider) Failed() int64 { return o.failed.Load() }

// take counts a failing call and returns its fault, or "".
func (o *FaultyProvider) take(call string) (f Fault, mended <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault == "" || o.call != "" && o.call != call {
		return "", nil
	}
	o.failed.Add(1)
	return o.fault, o.mended
}

// FaultyHTTP starts a proxy of an HTTP provider that works until Break. It stops with the test.
func FaultyHTTP(t testing.TB, provider string) *FaultyProvider {
	t.Helper()
	target, err := url.Parse(provider)
	if err != nil {
		t.Fatal(err)
	}
	o := &FaultyProvider{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// the caller may have timed out
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault, mended := o.take(r.Method + " " + r.URL.Path)
		if fault == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body) // needed to notice when the caller disconnects
		if err != nil {
			return
		}
		if fault == AnswerLost || fault == AnswerLate {
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		switch fault {
		case Hanging, AnswerLate:
			select {
			case <-mended:
			case <-r.Context().Done():
			case <-time.After(hangsFor):
			}
		case Garbage:
			_, _ = io.WriteString(w, garbagePage)
			return
		case Busy:
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		case Down, AnswerLost:
		}
		panic(http.ErrAbortHandler)
	}))
	o.URL, o.Addr = server.URL, server.Listener.Addr().String()
	t.Cleanup(func() {
		o.Mend()
		server.Close()
	})
	return o
}

// FaultySMTP starts a proxy of a mail server, like FaultyHTTP.
func FaultySMTP(t testing.TB, server string) *FaultyProvider {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &FaultyProvider{Addr: listener.Addr().String()}
	var calls sync.WaitGroup
	calls.Go(func() {
		for {
			caller, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				calls.Go(func() {
					defer func() { _ = caller.Close() }()
					o.serveSMTP(caller, server)
				})
			}
		}
	})
	t.Cleanup(func() {
		o.Mend()
		_ = listener.Close()
		calls.Wait()
	})
	return o
}

func (o *FaultyProvider) serveSMTP(caller net.Conn, server string) {
	fault, mended := o.take("")
	switch fault {
	case Down:
	case Hanging:
		select {
		case <-mended:
		case <-time.After(hangsFor):
		}
	case Garbage:
		_, _ = io.WriteString(caller, garbagePage+"\r\n")
		_, _ = bufio.NewReader(caller).ReadString('\n') // until the caller sends something or disconnects
	case Busy:
		_, _ = io.WriteString(caller, "421 4.7.0 too many connections\r\n")
	default:
		provider, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer func() { _ = provider.Close() }()
		go func() {
			_, _ = io.Copy(provider, caller)
			_ = provider.(*net.TCPConn).CloseWrite()
		}()
		answers, data := bufio.NewReader(provider), false
		for {
			line, err := answers.ReadString('\n')
			if err != nil || data && fault == AnswerLost {
				return
			}
			data = strings.HasPrefix(line, "354") // the mail follows
			if _, err := io.WriteString(caller, line); err != nil {
				return
			}
		}
	}
}
