package http

import (
	"net/http"
	"strings"

	"flagledger/http/dashboard"
	"flagledger/http/web"
)

// addDashboard serves the dashboard, or how to get it where the program was built without it.
func (a *API) addDashboard() {
	show := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { web.NoDashboard.Write(w, http.StatusNotFound) })
	if dashboard.Built() {
		show = dashboard.Handler(dashboard.Files()).ServeHTTP
	}
	a.router.Get(dashboard.Path, show)
	a.router.Get(dashboard.Path+"/*", show)
}

// leadToDashboard leads a browser that opens the service's address to the dashboard; other clients get JSON there.
func leadToDashboard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Add("Vary", "Accept")
			if strings.Contains(r.Header.Get("Accept"), "text/html") {
				w.Header().Set("Cache-Control", "no-cache")
				http.Redirect(w, r, dashboard.Path, http.StatusFound)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
