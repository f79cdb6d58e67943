package commands

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// ReturnURLs are where a page of the payment provider may lead back to.
type ReturnURLs struct {
	origins []string
	http    bool // on this machine, as in development
}

const maxReturnURL = 2000 // characters

// NewReturnURLs allows the pages of origins such as https://app.example.com. Pages over http are allowed on the machine
// of whoever looks at them, and only in development.
func NewReturnURLs(origins []string, development bool) (ReturnURLs, error) {
	r := ReturnURLs{http: development}
	for _, text := range origins {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
			u.Fragment != "" ||
			u.Scheme != "https" && u.Scheme != "http" {
			return r, fmt.Errorf("%q is no origin such as https://app.example.com", text)
		}
		r.origins = append(r.origins, origin(u))
	}
	return r, nil
}

// origin is a URL's origin as browsers write it.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	for scheme, port := range map[string]string{"https": ":443", "http": ":80"} {
		if u.Scheme == scheme {
			host = strings.TrimSuffix(host, port)
		}
	}
	return u.Scheme + "://" + host
}

// check tells why a page may not be led back to; nil where it may.
func (r ReturnURLs) check(text string) error {
	if text == "" {
		return errors.New("is required")
	}
	if len(text) > maxReturnURL {
		return fmt.Errorf("must have at most %d characters", maxReturnURL)
	}
	// Browsers read a backslash as a slash, and leave out tabs and line breaks, so that what they open may be another page
	// than what is checked here.
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
