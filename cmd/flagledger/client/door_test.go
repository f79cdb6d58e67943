package client_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// door is a proxy before a service. When shut, it closes connections and answers 503. It counts refreshes, and delays
// them until the service has refused the expected number of tokens.
type door struct {
	*httptest.Server
	closed                      atomic.Bool
	refreshes, refused, awaited atomic.Int64
}

func newDoor(t *testing.T, service string) *door {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	d, proxy := &door{}, httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode == http.StatusUnauthorized && r.Request.URL.Path == "/api/v1/flags" {
			d.refused.Add(1)
		}
		return nil
	}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.closed.Load() {
			http.Error(w, "shut", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/api/v1/auth/refresh" {
			d.refreshes.Add(1)
			for d.refused.Load() < d.awaited.Load() && r.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *door) shut() {
	d.closed.Store(true)
	d.CloseClientConnections()
}

func (d *door) open() { d.closed.Store(false) }
