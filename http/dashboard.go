package http

import (
	"net/http"
	"net/url"
	"strings"

	"flagledger/http/accounts"
	"flagledger/http/dashboard"
	"flagledger/http/web"
)

// addDashboard serves the dashboard, or build instructions if the program was built without it.
func (a *API) addDashboard() {
	show := http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { web.NoDashboard.Write(w, http.StatusNotFound) },
	)
	if dashboard.Built() {
		show = dashboard.Handler(dashboard.Files(), a.PublicPath).ServeHTTP
	}
	a.Router.Get(dashboard.Path, show)
	a.Router.Get(dashboard.Path+"/*", show)
}

// leadToDashboard redirects browsers from the root path to the dashboard; other clients get JSON there. If the program
// has a dashboard, it also redirects mailed links, with the token in the fragment, which browsers do not send.
func (a *API) leadToDashboard(next http.Handler) http.Handler {
	built := dashboard.Built()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		mailed := built && (path == accounts.ResetPage || path == accounts.VerifyPage)
		if path != "/" && !mailed || r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Accept")
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			next.ServeHTTP(w, r)
			return
		}
		to := a.PublicPath + dashboard.Path
		if mailed {
			to += path + "#" + url.Values{"token": r.URL.Query()["token"]}.Encode()
		}
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		//nolint:gosec // to a path of the service's own: the token is in the fragment, encoded
		http.Redirect(w, r, to, http.StatusFound)
	})
}
