package dashboard_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"flagledger/http/dashboard"
)

func TestServing(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"index.html":          {Data: []byte(`<html data-base="./"><script src="./assets/page-1.js">`)},
		"assets/page-1.js":    {Data: []byte("plain")},
		"assets/page-1.js.br": {Data: []byte("brotli")},
		"assets/page-1.js.gz": {Data: []byte("gzip")},
		"assets/icon-1.svg":   {Data: []byte("<svg/>")},
	}
	handler := dashboard.Handler(files, "/flags")
	const page = `<html data-base="/flags/app/"><script src="/flags/app/assets/page-1.js">`
	const forEver = "public, max-age=31536000, immutable"
	for name, c := range map[string]struct {
		path, accepts                string
		status                       int
		body, encoding, cache, media string
	}{
		"the page":                         {"/app", "", 200, page, "", "no-cache", "text/html"},
		"a page within":                    {"/app/t/1/production/flags/a.js", "br", 200, page, "", "no-cache", "text/html"},
		"an asset":                         {"/app/assets/page-1.js", "", 200, "plain", "", forEver, "text/javascript"},
		"compressed":                       {"/app/assets/page-1.js", "gzip, deflate, br", 200, "brotli", "br", forEver, "text/javascript"},
		"compressed for older ones":        {"/app/assets/page-1.js", "gzip;q=0.8", 200, "gzip", "gzip", forEver, "text/javascript"},
		"not as refused":                   {"/app/assets/page-1.js", "br;q=0, gzip;q=0.0", 200, "plain", "", forEver, "text/javascript"},
		"what no build compressed":         {"/app/assets/icon-1.svg", "br", 200, "<svg/>", "", forEver, "image/svg+xml"},
		"an asset of another release":      {"/app/assets/page-2.js", "br", 404, "Not Found\n", "", "no-store", "text/plain"},
		"an asset without a name":          {"/app/assets//page-1.js", "", 404, "Not Found\n", "", "no-store", "text/plain"},
		"nothing that is above the assets": {"/app/assets/../index.html", "", 404, "Not Found\n", "", "no-store", "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/app", nil)
			r.URL.Path = c.path
			if c.accepts != "" {
				r.Header.Set("Accept-Encoding", c.accepts)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			h := w.Header()
			media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
			got := []any{w.Code, w.Body.String(), h.Get("Content-Encoding"), h.Get("Cache-Control"), media}
			want := []any{c.status, c.body, c.encoding, c.cache, c.media}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("got %q, want %q", got, want)
					break
				}
			}
			checkPolicy(t, h.Get("Content-Security-Policy"))
		})
	}
}

// checkPolicy fails if a policy allows foreign sources, or lets a script turn a text into markup.
func checkPolicy(t *testing.T, policy string) {
	t.Helper()
	allowed := map[string]string{}
	for directive := range strings.SplitSeq(policy, ";") {
		name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
		if _, twice := allowed[name]; twice {
			t.Errorf("the policy has %s twice, and browsers take the first", name)
		}
		allowed[name] = sources
	}
	want := map[string]string{
		"default-src":               "'none'",
		"script-src":                "'self'",
		"style-src":                 "'self'",
		"connect-src":               "'self'",
		"img-src":                   "'self'",
		"font-src":                  "'self'",
		"base-uri":                  "'none'",
		"form-action":               "'none'",
		"frame-ancestors":           "'none'",
		"require-trusted-types-for": "'script'",
		"trusted-types":             "svelte-trusted-html",
	}
	if !maps.Equal(allowed, want) {
		t.Errorf("the policy has %v, want %v", allowed, want)
	}
}
