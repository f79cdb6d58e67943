package http

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"flagledger/commands"
)

const metricsRoute = "/metrics"

// MetricsServer returns a server of the metrics and /health alone, for an address of its own, which its caller starts
// and stops.
func (a *API) MetricsServer() *http.Server {
	metrics := promhttp.HandlerFor(a.Metrics, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsRoute, metrics)
	mux.Handle("GET /health", a)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()[nosniffHeader] = nosniff
		mux.ServeHTTP(w, r)
	})
	return &http.Server{
		Handler:                      handler,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 answerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
	}
}

// addMetrics serves the metrics beside the interface to clients on the same machine. Those that come through a proxy
// are not.
func (a *API) addMetrics() {
	metrics := promhttp.HandlerFor(a.Metrics, promhttp.HandlerOpts{})
	a.router.Get(metricsRoute, func(w http.ResponseWriter, r *http.Request) {
		if !onThisMachine(r) {
			notFound(w, r)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// onThisMachine reports whether a client is on the same machine, and asks for it by such a name: a page of a browser
// there can be led to it by a name of its own.
func onThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if name := (&url.URL{Host: r.Host}).Hostname(); err != nil || !commands.Loopback(name) ||
		r.Header.Get("X-Forwarded-For") != "" ||
		r.Header.Get("Forwarded") != "" {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
