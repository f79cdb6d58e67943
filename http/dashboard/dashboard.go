// Package dashboard serves the dashboard, a page that calls only the public API. Its sources are in src/, the build is
// in dist/.
package dashboard

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Path is the path of the dashboard.
const Path = "/app"

// IsAsset reports whether a request's path is a file that pages of the dashboard load.
func IsAsset(path string) bool {
	name, found := strings.CutPrefix(path, Path+"/")
	if !found || !strings.HasPrefix(name, assets) {
		return false
	}
	_, err := fs.Stat(files, name)
	return err == nil
}

// Policy restricts the dashboard to its own files and this service, and forbids frames. Only Svelte may create markup
// from text, from its own templates.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

//go:embed all:dist
var dist embed.FS

var files = func() fs.FS {
	files, err := fs.Sub(dist, "dist/app")
	if err != nil {
		panic(err) // the folder is missing
	}
	return files
}()

// Files returns the build. It has no index.html if the program was built without Node.
func Files() fs.FS { return files }

// Built reports whether the dashboard was built with the program.
func Built() bool {
	_, err := fs.Stat(files, index)
	return err == nil
}

const (
	index  = "index.html"
	assets = "assets/" // their names include a hash of their content
)

// Handler serves the files of a build under Path. All pages share one document, so any path except an asset's returns
// it. publicPath is prepended to the document's relative URLs.
func Handler(files fs.FS, publicPath string) http.Handler {
	page, unread := fs.ReadFile(files, index)
	page = bytes.ReplaceAll(page, []byte(`"./`), []byte(`"`+publicPath+Path+`/`))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Trim(strings.TrimPrefix(r.URL.Path, Path), "/")
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("Referrer-Policy", "no-referrer")
		if !strings.HasPrefix(name, assets) {
			if unread != nil {
				missing(w, unread)
				return
			}
			h.Set("Cache-Control", "no-cache")
			h.Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page)
			return
		}
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		serveFile(w, r, files, name)
	})
}

// encodings lists the build's compressed formats, best first, with their file extensions.
var encodings = []struct{ name, end string }{{"br", ".br"}, {"gzip", ".gz"}}

// serveFile serves a file, compressed if the client accepts an encoding that the build has.
func serveFile(w http.ResponseWriter, r *http.Request, files fs.FS, name string) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		missing(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("Vary", "Accept-Encoding")
	for _, e := range encodings {
		if !accepts(r, e.name) {
			continue
		}
		if compressed, err := fs.ReadFile(files, name+e.end); err == nil {
			h.Set("Content-Encoding", e.name)
			text = compressed
			break
		}
	}
	_, _ = w.Write(text) //nolint:gosec // a file of the build
}

// missing answers a request for an unknown file: after a new release, a page may ask for files of the old one.
func missing(w http.ResponseWriter, err error) {
	w.Header().Set("Cache-Control", "no-store")
	status := http.StatusInternalServerError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) { // a name such as a/../b is invalid
		status = http.StatusNotFound
	}
	http.Error(w, http.StatusText(status), status)
}

// accepts reports whether a request takes an encoding.
func accepts(r *http.Request, encoding string) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(quality), "q="), "0.") != "" || quality == ""
		}
	}
	return false
}
