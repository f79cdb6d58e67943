package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A proxy may serve the service under a path, which is part of the public URL. All paths in responses begin with it.
// Requests may come with or without it, as some proxies remove it.

// ownSegments lists the first segments of the service's own paths.
var ownSegments = []string{
	".well-known",
	"admin",
	"api",
	"app",
	"auth",
	"docs",
	"flagd.sync.v1.FlagSyncService",
	"grpc.health.v1.Health",
	"health",
	"metrics",
	"oauth",
	"ofrep",
	"openapi.json",
	"problems",
	"reset-password",
	"sandbox",
	"v1",
	"verify-email",
}

var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// CheckPublicPath returns an error if the service cannot be served under a path.
func CheckPublicPath(path string) error {
	if !plainPath.MatchString(path) {
		return fmt.Errorf("the path %q must consist of letters, digits, '-', '.', '_' and '~' between slashes", path)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if slices.Contains(ownSegments, first) {
		return fmt.Errorf("the path %q must not begin with /%s, which is a path of the service itself", path, first)
	}
	return nil
}

// publicPathOf returns the path of the public URL, without a slash at its end.
func publicPathOf(publicURL string) string {
	u, err := url.Parse(publicURL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

// PublicPath returns a path of the service as clients see it.
func PublicPath(ctx context.Context, path string) string { return RequestOf(ctx).publicPath + path }

// ownPath returns the service's own path for a request's path. It removes the public path, repeated leading slashes and
// a trailing slash.
func (a *Core) ownPath(path string) string {
	path = oneSlash(path)
	if rest, found := strings.CutPrefix(path, a.PublicPath); found && (rest == "" || rest[0] == '/') {
		path = oneSlash(rest)
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// oneSlash returns a path with one leading slash: clients may join a base URL that ends in a slash with a path that
// begins with one.
func oneSlash(path string) string {
	if path == "" || strings.HasPrefix(path, "//") {
		return "/" + strings.TrimLeft(path, "/")
	}
	return path
}

// withOwnPath sets a request's URL to the service's own path.
func (a *Core) withOwnPath(r *http.Request) {
	routed := routedPath(r)
	path := a.ownPath(routed)
	if path == routed {
		return
	}
	u := *r.URL
	if u.Path = path; u.RawPath != "" {
		u.RawPath = path
		u.Path, _ = url.PathUnescape(path) // a part of it was decoded before
	}
	r.URL = &u
}
