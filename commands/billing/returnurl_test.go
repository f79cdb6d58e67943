package billing

import (
	"net/url"
	"strings"
	"testing"
)

func returnURLs(t testing.TB, development bool) ReturnURLs {
	t.Helper()
	r, err := NewReturnURLs(
		[]string{
			"https://app.example.com",
			"https://Flags.Example.com:8443",
			"http://localhost:5173",
			"http://app.example.com",
		},
		development,
	)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReturnURLs(t *testing.T) {
	t.Parallel()
	development, production := returnURLs(t, true), returnURLs(t, false)
	for _, text := range []string{
		"https://app.example.com", "https://app.example.com/", "https://app.example.com/billing?a=b&c=%20#done", "https://APP.example.com/x", "HTTPS://app.example.com/x",
		"https://app.example.com:443/x", "https://flags.example.com:8443/x", "https://app.example.com/done?session={CHECKOUT_SESSION_ID}",
		"https://app.example.com/a/../b", "https://app.example.com?next=//evil.example", "https://app.example.com//evil.example/x",
	} {
		if err := production.check(text); err != nil {
			t.Errorf("%s is refused: %v", text, err)
		}
	}
	if err := development.check("http://localhost:5173/billing"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		"", "/billing", "billing", "//evil.example", "//app.example.com/x", "https:", "https://", "https:app.example.com", "https:/app.example.com", "https:///app.example.com",
		"https://evil.example", "https://evil.example/https://app.example.com", "https://app.example.com.evil.example", "https://evilapp.example.com", "https://example.com",
		"https://app.example.com:8443/", "https://flags.example.com/", "https://app.example.com@evil.example", "https://user@app.example.com/", "https://user:password@app.example.com/",
		"https://@app.example.com/", "https://app.example.com\\@evil.example", "https://evil.example\\@app.example.com", "https:\\\\app.example.com", "https://app.example.com\\x", "\\\\evil.example",
		"javascript:alert(1)", "javascript://app.example.com/%0aalert(1)", "data:text/html,x", "ftp://app.example.com/", "file:///etc/passwd", "vbscript:x", "blob:https://app.example.com/x",
		" https://app.example.com", "https://app.example.com ", "https://app.example.com/\n", "https://app.exam\tple.com", "\thttps://app.example.com", "https://app.example.com/\x00", "java\nscript:x",
		"https://app.example.com./", "https://%61pp.example.com", "https://app%2eexample.com", "https://\u0430pp.example.com", "https://app.example.com/\u202e", "https://[::1]/", "https://app.example.com:/x:",
		"https://app.example.com:99999999/", "https://app.example.com%00.evil.example", "https://app.example.com%2f@evil.example/", "https://evil.example#@app.example.com/", "https://evil.example?@app.example.com/",
		"http://app.example.com/", "http://localhost:5173.evil.example/", "https://app.example.com/" + strings.Repeat("x", maxReturnURL),
	} {
		if development.check(text) == nil {
			t.Errorf("%q is allowed in development", text)
		}
		if production.check(text) == nil {
			t.Errorf("%q is allowed", text)
		}
	}
	if production.check("http://localhost:5173/billing") == nil {
		t.Error("http is allowed in production")
	}
}

func TestOriginsOfReturnURLs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "*", "app.example.com", "https://app.example.com/path", "https://user@app.example.com", "https://app.example.com?x", "ftp://app.example.com", "https://"} {
		if _, err := NewReturnURLs([]string{text}, true); err == nil {
			t.Errorf("%q is taken for an origin", text)
		}
	}
}

// authority returns the host that a browser would open: it reads a backslash as a slash, and ignores tabs and line
// breaks.
func authority(text string) string {
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "", "\\", "/").
		Replace(strings.Trim(text, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f "))
	_, rest, _ := strings.Cut(text, ":")
	rest = strings.TrimLeft(rest, "/")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return strings.ToLower(rest[strings.LastIndexByte(rest, '@')+1:])
}

// Every accepted URL leads a browser to an allowed origin.
func FuzzReturnURL(f *testing.F) {
	for _, text := range []string{
		"https://app.example.com/x", "//evil.example", "https://app.example.com@evil.example", "https://app.example.com\\@evil.example", "javascript:alert(1)",
		"https://app.example.com:443", "http://localhost:5173", "https:/\\app.example.com", "https://evil.example\\.app.example.com", "https://flags.example.com:8443?x",
	} {
		f.Add(text)
	}
	hosts := map[string]bool{
		"app.example.com":        true,
		"app.example.com:443":    true,
		"flags.example.com:8443": true,
		"localhost:5173":         true,
	}
	f.Fuzz(func(t *testing.T, text string) {
		if returnURLs(t, true).check(text) != nil {
			return
		}
		if !hosts[authority(text)] {
			t.Errorf("%q leads to %q", text, authority(text))
		}
		if u, err := url.Parse(text); err != nil || u.User != nil || u.Scheme != "https" && u.Hostname() != "localhost" {
			t.Errorf("%q is allowed", text)
		}
	})
}

func TestPlanPrices(t *testing.T) {
	t.Parallel()
	p, err := ParsePlanPrices(" standard=price_1, enhanced=price_2,standard=price_3,")
	if err != nil || p.sold["standard"] != "price_1" || p.plans["price_3"] != "standard" ||
		p.plans["price_2"] != "enhanced" {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, text := range []string{"standard", "standard=", "=price_1", "gold=price_1", "free=price_1", "standard=price_1,enhanced=price_1", "standard=a b"} {
		if _, err := ParsePlanPrices(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
