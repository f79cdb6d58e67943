package rest

import (
	"net/http"
	"net/url"
	"strings"

	"flagledger/http/quota"
)

// baseURL returns the URL by which the client reaches the service: the configured public URL, or else the request's
// scheme and host. X-Forwarded-Host and X-Forwarded-Proto count only from a trusted proxy.
func (a *Core) baseURL(r *http.Request) string {
	if !a.FollowHost {
		return a.PublicURL
	}
	scheme, host := "http", r.Host
	if quota.FromProxy(r, a.Proxies) {
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
