package billing

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// ReturnURLs holds the pages that the payment provider may lead back to.
type ReturnURLs struct {
	origins []string
	http    bool // allows this machine, in development
}

const maxReturnURL = 2000 // characters

// NewReturnURLs allows the pages of origins such as https://app.example.com. In development it also allows http pages
// on the local machine.
func NewReturnURLs(origins []string, development bool) (ReturnURLs, error) {
	r := ReturnURLs{http: development}
	for _, text := range origins {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
			u.Fragment != "" ||
			u.Scheme != "https" && u.Scheme != "http" {
			return r, fmt.Errorf("%q is not an origin such as https://app.example.com", text)
		}
		r.origins = append(r.origins, origin(u))
	}
	return r, nil
}

// origin returns a URL's origin as browsers write it.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	for scheme, port := range map[string]string{"https": ":443", "http": ":80"} {
		if u.Scheme == scheme {
			host = strings.TrimSuffix(host, port)
		}
	}
	return u.Scheme + "://" + host
}

// check returns why a page is not allowed, or nil.
func (r ReturnURLs) check(text string) error {
	if text == "" {
		return errors.New("is required")
	}
	if len(text) > maxReturnURL {
		return fmt.Errorf("must have at most %d characters", maxReturnURL)
	}
	// Browsers read a backslash as a slash, and drop tabs and line breaks, so that they might open a different page
	// than the checked one.
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == '\\' || c >= 0x7f }) {
		return errors.New("must be a URL of visible ASCII characters without a backslash")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" || strings.Contains(u.Host, "@") {
		return errors.New("must be a whole URL without a user, such as https://app.example.com/billing")
	}
	if near := r.http && u.Scheme == "http" && Loopback(u.Hostname()); u.Scheme != "https" && !near {
		return errors.New("must begin with https://")
	}
	if !slices.Contains(r.origins, origin(u)) {
		return fmt.Errorf("must be a page of the service or of an application that belongs to it: %s does not", origin(u))
	}
	return nil
}

// Loopback reports whether the host of a URL is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
