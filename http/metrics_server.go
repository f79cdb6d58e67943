package http

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"flagledger/commands/billing"
	"flagledger/http/rest"
)

const metricsRoute = "/metrics"

// MetricsServer returns a server that serves only the metrics and /health. The caller starts and stops it.
func (a *API) MetricsServer() *http.Server {
	metrics := promhttp.HandlerFor(a.Metrics, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsRoute, metrics)
	mux.Handle("GET /health", a.Core)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()[rest.NosniffHeader] = rest.Nosniff
		mux.ServeHTTP(w, r)
	})
	return &http.Server{
		Handler:                      handler,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            rest.ReadHeaderTimeout,
		ReadTimeout:                  rest.ReadTimeout,
		WriteTimeout:                 rest.AnswerTimeout,
		IdleTimeout:                  rest.IdleTimeout,
		MaxHeaderBytes:               rest.MaxHeader,
	}
}

// addMetrics serves the metrics beside the interface, only to clients on the same machine that use no proxy.
func addMetrics(core *rest.Core) {
	metrics := promhttp.HandlerFor(core.Metrics, promhttp.HandlerOpts{})
	core.Router.Get(metricsRoute, func(w http.ResponseWriter, r *http.Request) {
		if !onThisMachine(r) {
			rest.NotFound(w, r)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// hostName returns the name of a host without its port.
func hostName(host string) string { return (&url.URL{Host: host}).Hostname() }

// onThisMachine reports whether the client is on the same machine and uses a loopback name as host. The latter guards
// against DNS rebinding in a local browser.
func onThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if name := hostName(r.Host); err != nil || !billing.Loopback(name) || forwarded(r) {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// forwarded reports whether a proxy says that it forwards a request.
func forwarded(r *http.Request) bool {
	return len(r.Header["X-Forwarded-For"]) > 0 || len(r.Header["Forwarded"]) > 0
}
