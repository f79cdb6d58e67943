package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }

// shell is where a person runs commands: their home, their service and their settings.
type shell struct {
	t        *testing.T
	program  *nodetest.Program
	home     string
	settings []string
	stdin    string
}

func newShell(t *testing.T, s *nodetest.Service) shell {
	t.Helper()
	home := t.TempDir()
	return shell{t, nodetest.Build(t), home, []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "FLAGLEDGER_URL=" + s.URL,
	}, ""}
}

// with returns the shell with other settings.
func (s shell) with(settings ...string) shell {
	s.settings = append(append([]string{}, s.settings...), settings...)
	return s
}

// typing returns the shell with text for the standard input of commands.
func (s shell) typing(text string) shell {
	s.stdin = text
	return s
}

// ran is the output and the exit code of a command.
type ran struct {
	t              *testing.T
	command        string
	stdout, stderr string
	code           int
}

func (s shell) command(arguments ...string) *exec.Cmd {
	c := s.program.Command(s.settings, arguments...)
	c.Stdin, c.Dir = strings.NewReader(s.stdin), s.home
	return c
}

// try runs a command. It is safe for concurrent use.
func (s shell) try(arguments ...string) ran {
	var stdout, stderr bytes.Buffer
	c := s.command(arguments...)
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		s.t.Error(err)
	}
	return ran{s.t, strings.Join(arguments, " "), stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// run runs a command that must succeed.
func (s shell) run(arguments ...string) ran {
	s.t.Helper()
	r := s.try(arguments...)
	if r.code != 0 || r.stderr != "" {
		s.t.Fatalf("%s ended with code %d and printed\n%s%s", r.command, r.code, r.stdout, r.stderr)
	}
	return r
}

// refused checks that a command ends with a code and one line of error, which has all of the words.
func (r ran) refused(code int, words ...string) {
	r.t.Helper()
	if r.code != code || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 {
		r.t.Errorf("%s ended with code %d, want %d and one line of error:\n%s%s", r.command, r.code, code, r.stderr, r.stdout)
	}
	for _, word := range words {
		if !strings.Contains(r.stderr, word) {
			r.t.Errorf("%s: the error lacks %q: %s", r.command, word, r.stderr)
		}
	}
}

// prints checks that lines were printed. Columns are separated by any number of spaces, and ... stands for any text.
func (r ran) prints(lines ...string) ran {
	r.t.Helper()
	for _, line := range lines {
		shape := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
		shape = strings.ReplaceAll(strings.ReplaceAll(shape, `\.\.\.`, ".*"), " ", " +")
		if !regexp.MustCompile("(?m)^" + shape + " *$").MatchString(r.stdout) {
			r.t.Errorf("%s does not print %q:\n%s", r.command, line, r.stdout)
		}
	}
	return r
}

// object is the JSON that was printed.
func (r ran) object() (o map[string]any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), &o); err != nil {
		r.t.Fatalf("%s: %v in %s", r.command, err, r.stdout)
	}
	return o
}

// signUp signs a new person up.
func signUp(t *testing.T, s *nodetest.Service) shell {
	t.Helper()
	me := newShell(t, s)
	me.typing(nodetest.Password+"\n").run("login", "--sign-up", nodetest.Address(), "--password-stdin")
	return me
}

// stored returns the path and the content of the stored session.
func (s shell) stored() (path string, session map[string]string) {
	s.t.Helper()
	err := filepath.WalkDir(s.home, func(name string, _ fs.DirEntry, err error) error {
		if filepath.Base(name) == "session.json" {
			path = name
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &session)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return path, session
}

func TestLoginStoresSessionForOwnerAlone(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me, email := newShell(t, s), nodetest.Address()
	me.run("login", "--help")
	me.try("flags", "list").refused(1, "not signed in", s.URL, "flagledger login EMAIL")

	signedUp := me.typing(nodetest.Password+"\r\n").run("login", "--sign-up", email, "--password-stdin")
	signedUp.prints("service "+s.URL, "signed in as "+email, "tenant ... (...)")
	path, session := me.stored()
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s has the mode %v, want %v (%v)", name, info.Mode(), want, err)
		}
	}
	text, _ := os.ReadFile(path)
	if strings.Contains(string(text), nodetest.Password) || session["server"] != s.URL || session["email"] != email {
		t.Errorf("the session is %s", text)
	}
	me.run("flags", "list").prints("FLAG TYPE PRODUCTION STATUS VERSION UPDATED NAME")

	again := me.typing(nodetest.Password).run("login", email, "--password-stdin", "--json")
	if got := again.object()["data"].(map[string]any)["active_tenant_id"]; got != session["tenant"] {
		t.Errorf("the tenant %v is active, want %s", got, session["tenant"])
	}
	_, next := me.stored()
	for _, secret := range []string{session["token"], session["refreshToken"], next["token"], next["refreshToken"]} {
		if secret == "" || strings.Contains(signedUp.stdout+again.stdout, secret) {
			t.Errorf("a login prints its tokens, or has none")
		}
	}

	me.run("logout")
	if path, _ := me.stored(); path != "" {
		t.Errorf("the session is left after the logout")
	}
	ended := &nodetest.Client{Service: s.In(t), Token: next["token"]}
	ended.Call("GET", "/api/v1/tenants", nil).Want(401)
	me.try("logout").refused(1, "not signed in")
}

func TestRefusedLoginChangesNothing(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := signUp(t, s)
	_, before := me.stored()
	me.typing("battery staple").try("login", before["email"], "--password-stdin").refused(1, "password")
	me.typing(nodetest.Password).try("login", "--sign-up", before["email"], "--password-stdin").refused(1, "already")
	me.typing("short").try("login", "--sign-up", nodetest.Address(), "--password-stdin").refused(1, "validation failed", "password")
	me.typing("").try("login", before["email"], "--password-stdin").refused(1, "password")
	me.typing("a\nb").try("login", before["email"], "--password-stdin").refused(1, "one line")
	me.try("login", before["email"]).refused(1, "--password-stdin")
	me.try("login").refused(1, "--token-stdin")
	me.typing("x").try("login", before["email"], "--token-stdin").refused(1, "--token-stdin")
	me.typing("not a token").try("login", "--token-stdin").refused(1, "token")
	me.try("login", before["email"], "--password=secret").refused(1, "--password")
	for _, server := range []string{"flags.example.com", "ftp://flags.example.com", "https://ada:secret@flags.example.com"} {
		me.try("login", before["email"], "--server", server).refused(1, "--server")
	}
	if _, after := me.stored(); after["token"] != before["token"] {
		t.Error("a refused login changed the session")
	}
}

func TestPastedTokens(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t).In(t)
	c := s.SignUp(nodetest.Address())
	c.CreateFlag("k", nil)
	other := c.NewTenant("Other")
	me := newShell(t, s)

	me.with("FLAGLEDGER_TOKEN="+c.Token).run("flags", "list", "--tenant", strings.ToUpper(c.Tenant)).prints("k boolean ...")
	me.with("FLAGLEDGER_TOKEN="+c.Token, "FLAGLEDGER_TENANT="+c.Tenant).run("flags", "list").prints("k boolean ...")
	me.with("FLAGLEDGER_TOKEN="+c.Token).run("flags", "show", "k").prints("flag k") // in the tenant that was used last
	me.with("FLAGLEDGER_TOKEN=mistaken", "FLAGLEDGER_TENANT="+c.Tenant).try("flags", "list").refused(1, "token")
	if path, _ := me.stored(); path != "" {
		t.Error("FLAGLEDGER_TOKEN is stored")
	}

	me.typing(c.Token+"\n").run("login", "--token-stdin").prints("signed in as " + c.Email)
	me.run("flags", "list").prints("k boolean ...")
	if r := me.run("flags", "list", "--tenant", other.Tenant, "--json"); r.stdout != "[]\n" {
		t.Errorf("another tenant has the flags %s", r.stdout)
	}
	c.Call("POST", "/api/v1/auth/logout", nil).Want(200)
	me.try("flags", "list").refused(1, "session has ended")
	me.run("logout")
}

// expiring starts a service whose access tokens expire when the test says so.
func expiring(t *testing.T) (s *nodetest.Service, expire func()) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s = nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Now: now}, nodetest.Log(t))
	return s, func() { ahead.Add(int64(2 * time.Hour)) }
}

// A refresh token that is used twice ends its session. The test refuses all commands before the first one has a new
// token.
func TestCommandsAtOnceRefreshOnce(t *testing.T) {
	t.Parallel()
	s, expire := expiring(t)
	through := newDoor(t, s.URL)
	me := signUp(t, &nodetest.Service{T: t, URL: through.URL})
	_, before := me.stored()
	for round := range int64(2) {
		expire()
		const commands = 4
		results := make(chan ran, commands)
		through.awaited.Add(commands)
		for range commands {
			go func() { results <- me.try("flags", "list") }()
		}
		for range commands {
			if r := <-results; r.code != 0 {
				t.Errorf("it ended with code %d: %s", r.code, r.stderr)
			}
		}
		if n := through.refreshes.Load(); n != round+1 {
			t.Errorf("%d refreshes in %d rounds", n, round+1)
		}
	}
	path, after := me.stored()
	if after["token"] == before["token"] || after["refreshToken"] == before["refreshToken"] || after["tenant"] != before["tenant"] {
		t.Errorf("the session %v became %v", before, after)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%s has the mode %v (%v)", path, info.Mode(), err)
	}

	s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": before["refreshToken"]}).Want(401)
	me.try("flags", "list").refused(1, "session has ended", "flagledger login EMAIL")
	me.run("logout")
}

func TestTokensStayWithTheirService(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	_, session := me.stored()
	var calls atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(other.Close)
	me.try("flags", "list", "--server", other.URL).refused(1, "not signed in", other.URL)
	me.with("FLAGLEDGER_URL="+other.URL).try("flags", "list").refused(1, "not signed in", other.URL)
	me.with("FLAGLEDGER_URL=").run("flags", "list") // at the service of the login

	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	me.typing(nodetest.Password).try("login", session["email"], "--password-stdin", "--server", moved.URL).
		refused(1, "redirects to "+other.URL)
	if calls.Load() > 0 {
		t.Errorf("another service got %d calls", calls.Load())
	}
	other.Close()
	me.typing(nodetest.Password).try("login", session["email"], "--password-stdin", "--server", other.URL).
		refused(1, other.URL, "cannot be reached")
}

func TestAnswersOfOtherServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"a proxy's page": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<h1>Bad gateway</h1>", http.StatusBadGateway)
		}, "502 Bad Gateway"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<h1>Welcome</h1>")) }, "not its API"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.handler)
			t.Cleanup(server.Close)
			me := newShell(t, &nodetest.Service{URL: server.URL}).with("FLAGLEDGER_TOKEN=t", "FLAGLEDGER_TENANT=t")
			me.try("flags", "list").refused(1, test.says)
		})
	}
}
