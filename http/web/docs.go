package web

import (
	"bytes"
	"embed"
	"net/http"
)

//go:embed docs
var docs embed.FS

// DocsPage serves the page that shows the OpenAPI document. Its URLs begin with publicPath.
func DocsPage(publicPath string) http.HandlerFunc {
	page, err := docs.ReadFile("docs/page.html")
	if err != nil {
		panic(err) // the page is part of the program
	}
	page = bytes.ReplaceAll(page, []byte(`="/`), []byte(`="`+publicPath+`/`))
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}
}

// Docs serves the script or the style of that page by name, but not Swagger UI's own files.
func Docs(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, docs, "docs/"+name) }
}
