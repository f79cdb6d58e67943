package http

import (
	"net/http"

	"github.com/swaggest/swgui/v5emb"

	"flagledger/http/rest"
	"flagledger/http/web"
)

// docsPolicy restricts the API page to its own files and forbids frames. Swagger UI needs inline styles.
const docsPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// addDocs serves a page that shows the OpenAPI document, with Swagger UI from the binary.
func (a *API) addDocs() {
	swagger := v5emb.New("flagledger", "/openapi.json", "/docs")
	r := a.Router.With(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", docsPolicy)
			next.ServeHTTP(w, r)
		})
	})
	r.Get("/docs", web.DocsPage(a.PublicPath))
	r.Get("/docs/page.js", web.Docs("page.js"))
	r.Get("/docs/page.css", web.Docs("page.css"))
	r.Get("/docs/*", func(w http.ResponseWriter, r *http.Request) {
		found := &pageWriter{ResponseWriter: w}
		if swagger.ServeHTTP(found, r); found.missing {
			rest.NotFound(w, r)
		}
	})
}

// pageWriter suppresses the 404 response of Swagger UI.
type pageWriter struct {
	http.ResponseWriter
	missing bool
}

// WriteHeader implements net/http.ResponseWriter.
func (w *pageWriter) WriteHeader(status int) {
	if w.missing = status == http.StatusNotFound; !w.missing {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements net/http.ResponseWriter.
func (w *pageWriter) Write(b []byte) (int, error) {
	if w.missing {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
