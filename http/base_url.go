package http

import (
	"net/http"
	"net/url"
	"strings"

	"flagledger/http/limit"
)

// baseURL returns how the client of a request reaches the service: the public URL if the operator has set it, since a
// proxy may have changed the host, and else what the request says. X-Forwarded-Host and X-Forwarded-Proto count only
// from a trusted proxy.
func (a *API) baseURL(r *http.Request) string {
	if !a.FollowHost {
		return a.PublicURL
	}
	scheme, host := "http", r.Host
	if limit.FromProxy(r, a.Proxies) {
		if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ","); first != "" {
			host = strings.TrimSpace(first)
		}
		if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ","); strings.EqualFold(strings.TrimSpace(first),
			"https") {
			scheme = "https"
		}
	}
	base := scheme + "://" + host
	if u, err := url.Parse(base); err != nil || host == "" || u.Host != host || u.Hostname() == "" {
		return a.PublicURL
	}
	return base
}
