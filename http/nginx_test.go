package http_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
)

// The service works behind nginx in each configuration. Each runs all that clients need once.
func TestServiceWorksBehindNginx(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, server string
		chunked      bool
	}{
		"plain":                             {server: `location / { proxy_pass http://SERVICE; }`},
		"under a path that it removes":      {path: "/flags", server: `location /flags/ { proxy_pass http://SERVICE/; }`},
		"under a path that it passes on":    {path: "/tools/flags", server: `location /tools/flags/ { proxy_pass http://SERVICE; }`},
		"compressing all, with weak ETags":  {server: compressing + `location / { proxy_pass http://SERVICE; }`},
		"passing bodies on as they come in": {server: `location / { proxy_pass http://SERVICE; ` + unbuffered + `}`, chunked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, mails := behindNginx(t, c.path, c.server)
			s.Chunked = c.chunked
			tellStory(t, s)
			me := s.SignUp(nodetest.Address())
			changesOnlyWhatItHasSeen(t, me, strings.HasPrefix(c.server, compressing))
			followsAddresses(t, me, c.path)
			hearsOfChanges(t, me)
			loadsPages(t, s)
			resetsPassword(t, me, mails)
		})
	}
}

const (
	compressing = `gzip on; gzip_types *; gzip_proxied any; gzip_min_length 0; gzip_http_version 1.0; `
	unbuffered  = `proxy_http_version 1.1; proxy_request_buffering off; `
)

// behindNginx starts a service behind an nginx with a server block, in which SERVICE stands for its address. Calls go
// to nginx under a path.
func behindNginx(t *testing.T, path, server string) (*nodetest.Service, *mailtest.Server) {
	t.Helper()
	address, mails := nodetest.FreeAddress(t), mailtest.New(t, mailtest.Options{})
	proxy := nodetest.Nginx(t, strings.ReplaceAll(server, "SERVICE", address))
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", Addr: address, PublicURL: proxy + path,
		Mail: settings.Mail{URL: "smtp://" + mails.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	s.URL = s.Config.PublicURL
	return s, mails
}

// changesOnlyWhatItHasSeen sends a flag's ETag back unchanged.
func changesOnlyWhatItHasSeen(t *testing.T, me *nodetest.Client, weak bool) {
	t.Helper()
	me.CreateFlag("k", nil)
	tag := me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Header.Get("ETag")
	nodetest.Same(t, "whether the tag is weak", strings.HasPrefix(tag, "W/"), weak)
	me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`, "If-Match", tag).Want(200)
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "If-Match", tag).Refused(412)
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "If-Match", `"2"`).Want(200)
	me.Call("POST", nodetest.FlagPath("k", "/evaluate"), `{}`).Want(200).Shows(map[string]any{"value": true})
	me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
}

// followsAddresses follows the links of responses: Location, Link, types of problems, the keys of tokens.
func followsAddresses(t *testing.T, me *nodetest.Client, path string) {
	t.Helper()
	for _, key := range []string{"a", "b", "c"} {
		created := me.Call("POST", "/api/v1/flags", map[string]any{"key": key, "type": "boolean"}).Want(201)
		location := strings.TrimPrefix(created.Header.Get("Location"), path)
		me.Call("GET", location, nil).Want(200).Shows(map[string]any{"key": key})
	}
	var keys []any
	for next := "/api/v1/flags?limit=1"; next != ""; {
		page := me.Call("GET", next, nil).Want(200)
		keys = append(keys, page.List()[0]["key"])
		next = strings.TrimPrefix(linked(page), path)
	}
	nodetest.Same(t, "the keys of all pages", keys, []any{"a", "b", "c"})
	old := me.Call("GET", "/api/flags/a", nil).Want(200)
	nodetest.Same(t, "the successor", old.Header.Get("Link"), "<"+path+`/api/v1/flags/a>; rel="successor-version"`)
	kind := me.Call("GET", nodetest.FlagPath("none"), nil).Refused(404).Object()["type"].(string)
	me.Service.Anonymous().
		Call("GET", strings.TrimPrefix(kind, me.Service.URL), nil).
		Want(200).
		Shows(map[string]any{"type": kind})

	machine := me.Machine("flags:evaluate")
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(machine.Token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct{ Iss string }
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	nodetest.Same(t, "the issuer", claims.Iss, me.Service.URL)
	me.Service.Anonymous().Call("GET", "/.well-known/jwks.json", nil).Want(200)
	whole, _ := me.Document()
	nodetest.Same(t, "the servers of the document", whole["servers"], any([]any{map[string]any{"url": me.Service.URL}}))
}

// hearsOfChanges opens streams by the header and by the URL in OFREP's response.
func hearsOfChanges(t *testing.T, me *nodetest.Client) {
	t.Helper()
	streams := []*listening{listen(me), openStream(me.Service.Anonymous(), streamURL(me))}
	streams[1].next()
	enable(me, "a", "production")
	for _, stream := range streams {
		stream.hears("a 2")
	}
	callOFREP(me, "a", `{"targetingKey":"u"}`).Want(200)
}

// loadsPages loads the pages of the service with their files.
func loadsPages(t *testing.T, s *nodetest.Service) {
	t.Helper()
	nobody := s.Anonymous()
	for _, path := range []string{"/docs", "/docs/", "/app", "/app/t/1/production/flags"} {
		page := nobody.Call("GET", path, nil)
		at, err := url.Parse(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?:src|href|data-document)="([^"]*)"`).FindAllStringSubmatch(string(page.Body), -1) {
			file, err := at.Parse(found[1])
			if err != nil || !strings.HasPrefix(file.String(), s.URL+"/") {
				t.Errorf("%s loads %s, which is not below %s", path, found[1], s.URL)
				continue
			}
			nobody.Call("GET", strings.TrimPrefix(file.String(), s.URL), nil).Want(200)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	led := sendRequest(t, r).Request.URL.String() //nolint:bodyclose // sendRequest closes it
	nodetest.Same(t, "where the address leads a browser", led, s.URL+"/app")
}

// resetsPassword follows a mailed link to its form.
func resetsPassword(t *testing.T, me *nodetest.Client, mails *mailtest.Server) {
	t.Helper()
	s := me.Service
	s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": me.Email}).Want(200)
	link, _ := linkTo(t, mails, me.Email, 1)
	if !strings.HasPrefix(link, s.URL+"/") {
		t.Errorf("the link is %s", link)
	}
	postForm(s, link, url.Values{"newPassword": {"another horse"}}, 200)
	s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": me.Email, "password": "another horse"}).Want(200)
}

// The dashboard and the API's page work under a path of a shared host.
func TestDashboardWorksBehindNginxInABrowser(t *testing.T) {
	t.Parallel()
	chromium := findBrowser(t)
	s, _ := behindNginx(t, "/flags", `location /flags/ { proxy_pass http://SERVICE/; }`)
	command := exec.CommandContext(t.Context(), "node", "dashboard/stories/run.mjs", "docs", "journey")
	command.Env = append(os.Environ(), "CHROMIUM="+chromium, "SERVICE_URL="+s.URL)
	playStories(t, command, nil, nil)
}
