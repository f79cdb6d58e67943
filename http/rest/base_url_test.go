package rest

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// A stream's URL has the base URL of the client's request.
func TestBaseURLFollowsRequest(t *testing.T) {
	t.Parallel()
	const public = "http://localhost:8080"
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		name, host, from, forwardedHost, forwardedProto string
		set                                             bool
		want                                            string
	}{
		{name: "direct", host: "flags:8080", from: "192.0.2.1:5", want: "http://flags:8080"},
		{name: "IPv6", host: "[::1]:8080", from: "192.0.2.1:5", want: "http://[::1]:8080"},
		{name: "public URL that is set", host: "flags:8080", from: "10.0.0.1:5", forwardedHost: "b", forwardedProto: "https", set: true, want: public},
		{name: "a stranger's headers", host: "flags", from: "192.0.2.1:5", forwardedHost: "b", forwardedProto: "https", want: "http://flags"},
		{name: "proxy", host: "flags", from: "10.0.0.1:5", forwardedHost: "b.example", forwardedProto: "https", want: "https://b.example"},
		{name: "proxies", host: "flags", from: "10.0.0.1:5", forwardedHost: "b.example, c", forwardedProto: "HTTPS, http", want: "https://b.example"},
		{name: "proxy that keeps the host", host: "b.example", from: "10.0.0.1:5", forwardedProto: "https", want: "https://b.example"},
		{name: "no host", from: "192.0.2.1:5", want: public},
		{name: "no name", host: ":8080", from: "192.0.2.1:5", want: public},
		{name: "not a host", host: "flags", from: "10.0.0.1:5", forwardedHost: "u@b/c?", want: public},
	} {
		a := &Core{Options: Options{PublicURL: public, FollowHost: !c.set, Proxies: proxies}}
		r := httptest.NewRequest(http.MethodPost, "/ofrep/v1/evaluate/flags", nil)
		r.Host, r.RemoteAddr = c.host, c.from
		if c.forwardedHost != "" {
			r.Header.Set("X-Forwarded-Host", c.forwardedHost)
		}
		if c.forwardedProto != "" {
			r.Header.Set("X-Forwarded-Proto", c.forwardedProto)
		}
		if got := a.baseURL(r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
