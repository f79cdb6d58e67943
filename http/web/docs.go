package web

import (
	"embed"
	"net/http"
)

//go:embed docs
var docs embed.FS

// Docs is the file of a name of the page that shows the OpenAPI document: its HTML, its script or its style. Swagger UI's own files are not among them.
func Docs(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, docs, "docs/"+name) }
}
