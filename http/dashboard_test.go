package http_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/commands/tooltest"
	"flagledger/http/dashboard"
)

// A browser that opens the service's address is redirected to the dashboard. All other clients get JSON.
func TestTheAddressLeadsToTheDashboard(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for accept, want := range map[string][2]any{
		"text/html,application/xhtml+xml,*/*;q=0.8": {302, "/app"},
		"application/json":                          {200, ""},
		"*/*":                                       {200, ""},
		"":                                          {200, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		nodetest.Same(t, "Accept: "+accept,
			[]any{answer.StatusCode, answer.Header.Get("Location"), answer.Header.Values("Vary")},
			[]any{want[0], want[1], []string{"Accept"}})
	}
}

// Many people open the dashboard from one address, so the dozens of files of a page do not count as requests.
func TestAssetsOfTheDashboardAreNotCounted(t *testing.T) {
	t.Parallel()
	limits := nodetest.Generous
	limits.Anonymous = 500 // the test calls health until the service has started
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", Limits: limits, Now: stopped().now,
	}, nodetest.Log(t))
	left := func(path string) int {
		_, remaining, _ := budget(s.Anonymous().Call("GET", path, nil))
		return remaining
	}
	if !dashboard.Built() {
		tooltest.Require(t, "dashboard", errors.New("the tests were built without it: make dashboard"))
	}
	assets, err := fs.Glob(dashboard.Files(), "assets/index-*.js")
	if err != nil || len(assets) == 0 {
		t.Fatal("there are no assets", err)
	}
	before := left("/app/" + assets[0])
	for range 5 {
		if now := left("/app/" + assets[0]); now != before {
			t.Fatalf("%d are left, and were %d", now, before)
		}
	}
	for _, path := range []string{"/app", "/app/assets/x.js", "/app/assets/../x", "/app/assets//x.js"} {
		before--
		if now := left(path); now != before {
			t.Errorf("%d are left after %s, want %d", now, path, before)
		}
	}
	for _, path := range []string{"/app/assets/x.js", "/app/assets/../x", "/app/assets//x.js", "/app/assets/."} {
		s.Anonymous().Call("GET", path, nil).Want(404)
	}
}

// storyRequest is a request of a story to the test, for a service, an address, or a page of the payment provider.
type storyRequest struct {
	what, of string
	done     chan any // receives the answer
}

// restartedServer is a server of its own, which a story kills and starts again.
type restartedServer struct {
	*nodetest.Program
	database string
	process  *nodetest.Process
}

func newRestartedServer(t *testing.T) *restartedServer {
	t.Helper()
	r := &restartedServer{Program: nodetest.Build(t), database: nodetest.Database(t)}
	r.start()
	return r
}

func (r *restartedServer) start() {
	r.process = r.Serve("FLAGLEDGER_ENVIRONMENT=development", "FLAGLEDGER_DATABASE_URL="+r.database)
}

// The stories in dashboard/stories use the dashboard in a browser. Some kill and restart a server of their own, get
// mails and pay.
func TestTheDashboardInABrowser(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	chromium := findBrowser(t)
	restarted := map[string]*restartedServer{"flags": newRestartedServer(t), "shop": newRestartedServer(t)}
	mails := mailtest.New(t, mailtest.Options{})
	later := &atomic.Int64{} // how far stale's clock is ahead
	stale := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", StaleFor: 30 * time.Minute, // no session ends in it
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}, nodetest.Log(t))
	production := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "production", SuperUsers: []string{"root@example.com"},
		Mail: settings.Mail{URL: "smtp://" + mails.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	selling := newShop(t)
	openFeature, err := tooltest.Install("openfeature", os.DirFS("testdata/openfeature"))
	tooltest.Check(t, "openfeature", err)
	requests := make(chan storyRequest)
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := storyRequest{r.URL.Path, r.URL.Query().Get("of"), make(chan any, 1)}
		select {
		case requests <- asked:
			_ = json.NewEncoder(w).Encode(<-asked.done)
		case <-r.Context().Done():
		}
	}))
	defer control.Close()

	command := exec.CommandContext(
		t.Context(),
		"node",
		append([]string{"dashboard/stories/run.mjs"}, strings.Fields(os.Getenv("FLAGLEDGER_STORIES"))...)...)
	command.Env = append(os.Environ(), "CHROMIUM="+chromium, "SERVICE_URL="+s.URL,
		"RESTARTED_URL="+restarted["flags"].Service().URL, "SHOP_URL="+restarted["shop"].Service().URL, "STALE_URL="+stale.URL, "PRODUCTION_URL="+production.URL,
		"SELLING_URL="+selling.URL, "CONTROL_URL="+control.URL, "OPENFEATURE="+openFeature)
	playStories(t, command, requests, func(asked storyRequest) any {
		switch asked.what {
		case "/stop":
			restarted[asked.of].process.Kill()
		case "/start":
			restarted[asked.of].start()
		case "/later":
			later.Store(int64(31 * time.Minute))
		case "/mails":
			return slices.DeleteFunc(mails.Mails(), func(m mailtest.Mail) bool { return m.To != asked.of })
		case "/pay":
			selling.stripe.Pay(asked.of)
			selling.deliver()
		}
		return nil
	})
}

// playStories runs stories/run.mjs and reports each story as a subtest. It answers the stories' requests by answer, in
// the goroutine of the test.
func playStories(t *testing.T, command *exec.Cmd, requests <-chan storyRequest, answer func(storyRequest) any) {
	t.Helper()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	command.Stderr = &problems
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		for printed := bufio.NewReader(out); ; {
			line, err := printed.ReadBytes('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	for {
		select {
		case asked := <-requests:
			asked.done <- answer(asked)
		case line, more := <-lines:
			if !more {
				if err := command.Wait(); err != nil {
					t.Errorf("the stories ended with %v\n%s", err, &problems)
				}
				return
			}
			reportStory(t, line)
		}
	}
}

// reportStory reports a line of stories/run.mjs. A story may also print something of its own.
func reportStory(t *testing.T, line []byte) {
	t.Helper()
	var played struct {
		Story, Failure string
		Ms             int
	}
	if err := json.Unmarshal(line, &played); err != nil || played.Story == "" {
		t.Logf("%s", line)
		return
	}
	t.Run(played.Story, func(t *testing.T) {
		if played.Failure != "" {
			t.Error(played.Failure)
		}
		t.Logf("%d ms", played.Ms)
	})
}

// People with Firebase accounts use the dashboard like all others.
func TestTheDashboardWithFirebaseInABrowser(t *testing.T) {
	t.Parallel()
	chromium := findBrowser(t)
	s, e := onFirebase(t)
	command := exec.CommandContext(t.Context(), "node", "dashboard/stories/run.mjs", "firebase")
	command.Env = append(os.Environ(), "CHROMIUM="+chromium, "SERVICE_URL="+s.URL, "FIREBASE_EMULATOR="+e.Host)
	playStories(t, command, nil, nil)
}

// findBrowser returns the path of a browser for the stories: the headless one, which takes half the time, or the full
// one. It skips the test if the browser or the dashboard is missing.
func findBrowser(t testing.TB) string {
	t.Helper()
	if !dashboard.Built() {
		tooltest.Require(t, "dashboard", errors.New("the tests were built without it: make dashboard"))
	}
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil {
		return path
	}
	return tooltest.Find(t, "chromium")
}
