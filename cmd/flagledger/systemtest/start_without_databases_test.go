package systemtest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events/eventstore/esdbtest"
)

// A server that starts while its databases are down evaluates with its last state, reports that and refuses changes.
// When the databases return, it recovers by itself.
func TestAStartWhileAllDatabasesAreDown(t *testing.T) {
	t.Parallel()
	t.Run("Postgres", func(t *testing.T) { startWithoutDatabases(t, nil) })
	t.Run("Postgres and EventStoreDB", func(t *testing.T) { startWithoutDatabases(t, esdbtest.New(t)) })
}

func startWithoutDatabases(t *testing.T, eventStore *esdbtest.Server) {
	t.Parallel()
	dir, postgres := nodetest.OwnPostgres(t)
	program := nodetest.Build(t)
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + postgres.URL(), "FLAGLEDGER_PUBLIC_URL=http://flags.example.com"}
	if eventStore != nil {
		settings = append(settings, "FLAGLEDGER_EVENTSTORE_URL="+eventStore.URL())
	}
	server := program.Serve(settings...)
	s := program.Service()
	person := s.SignUp("me@example.com")
	person.CreateFlag("on", map[string]any{"clientSide": true})
	person.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	person.Call("POST", "/api/v1/segments", `{"key":"hidden","private":true}`).Want(201)
	person.Call("POST", "/api/v1/segments/hidden/members", `{"list":"included","add":["u"]}`).Want(200)
	person.SetRules("on", `{"rules":[{"conditions":[{"op":"in_segment","values":["hidden"]}],"serve":{"value":true}}]}`).Want(200)
	person.SetFallthrough("on", `{"serve":{"value":false}}`).Want(200)
	createFlagOfSegment(person)
	audience := string(person.Evaluate("audience", `{"targetingKey":"ada"}`).Want(200).Body)
	id, secret := person.OAuthClient("checkout", "flags:evaluate")
	newKey := func(kind string, signed bool) (path string, key map[string]any, c *nodetest.Client) {
		key = person.Call("POST", "/api/v1/evaluation-keys",
			fmt.Sprintf(`{"name":"k","kind":%q,"environment":"production","signed":%v}`, kind, signed)).Want(201).Object()
		return "/api/v1/evaluation-keys/" + key["id"].(string), key, s.Anonymous().WithToken(key["key"].(string))
	}
	_, _, withKey := newKey("server", false)
	_, _, browser := newKey("browser", false)
	_, signedKey, signed := newKey("browser", true)
	context := signContext(t, signedKey["signingSecret"].(string))
	path, _, rotated := newKey("server", false)
	person.Call("POST", path+"/rotate", nil).Want(200)
	path, _, ended := newKey("server", false)
	person.Call("POST", path+"/rotate", `{"endNow":true}`).Want(200)
	path, _, revoked := newKey("server", false)
	person.Call("DELETE", path, nil).Want(204)
	trade := fmt.Sprintf("grant_type=client_credentials&client_id=%s&client_secret=%s", id, secret)
	machine := &nodetest.Client{Service: s, Tenant: person.Tenant}
	machine.Token = s.Anonymous().Call("POST", "/api/v1/oauth/token", trade, "Content-Type", "application/x-www-form-urlencoded").Want(200).Object()["access_token"].(string)
	if code := server.End(syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}

	back := nodetest.Outage(t, dir)
	defer back()
	if eventStore != nil {
		eventStore.Stop()
	}
	server = program.Serve(settings...)
	t.Logf("healthy %v after the start without databases", server.Took)
	evaluates := func() {
		t.Helper()
		for name, c := range map[string]*nodetest.Client{
			"a revoked key": revoked, "a key that was rotated and ended": ended, "a signed key without a context": signed,
		} {
			if r := c.Attempt("POST", nodetest.FlagPath("on", "/evaluate"), `{}`); r.Status != 401 {
				t.Errorf("%s: %v", name, r)
			}
		}
		if r := signed.Attempt("POST", nodetest.FlagPath("on", "/evaluate"), `{}`, "X-Flag-Context", context); r.Status != 200 {
			t.Errorf("a signed context: %v", r)
		}
		callers := map[string]*nodetest.Client{
			"a machine": machine, "a person": person, "a server key": withKey, "a browser key": browser,
			"a key that was rotated": rotated,
		}
		for name, c := range callers {
			if r := c.Attempt("POST", nodetest.FlagPath("on", "/evaluate"), `{"targetingKey":"u"}`); r.Status != 200 ||
				!strings.Contains(r.Body, `"value":true`) {
				t.Errorf("%s evaluates: %v", name, r)
			}
		}
		if r := machine.Attempt("POST", "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"u"}}`); r.Status != 200 ||
			!strings.Contains(r.Body, `"key":"on"`) {
			t.Errorf("all flags: %v", r)
		}
		for unit, want := range map[string]string{"ada": audience, "eve": `"value":false`} {
			if r := machine.Attempt("POST", nodetest.FlagPath("audience", "/evaluate"), `{"targetingKey":"`+unit+`"}`); r.Status != 200 ||
				!strings.Contains(r.Body, want) {
				t.Errorf("of a segment for %s: %v", unit, r)
			}
		}
	}
	evaluates()
	for _, call := range [][2]string{
		{nodetest.FlagPath("on", "/disable"), ""}, {"/api/v1/flags", `{"key":"new","type":"boolean"}`}, {"/api/v1/projects", `{"name":"new"}`},
		{"/auth/signin", fmt.Sprintf(`{"email":"me@example.com","password":%q}`, nodetest.Password)},
	} {
		if r := person.Attempt("POST", call[0], call[1]); r.Status != 503 || r.Header.Get("Retry-After") == "" {
			t.Errorf("POST %s: %v", call[0], r)
		}
	}
	if r := person.Attempt("GET", "/api/v1/flags", ""); r.Status != 503 {
		t.Errorf("a list: %v", r)
	}
	if a := s.Anonymous().
		Call("POST", "/api/v1/oauth/token", trade, "Content-Type", "application/x-www-form-urlencoded"); a.Status != 503 {
		t.Errorf("a token: %d %s", a.Status, a.Body)
	}
	s.Eventually("health tells of it", func() bool {
		r := person.Attempt("GET", "/health", "")
		return r.Status == 200 && strings.Contains(r.Body, `"status":"degraded"`) &&
			strings.Contains(r.Body, "flags are evaluated as they were ")
	})

	back()
	if eventStore != nil {
		eventStore.Start()
	}
	s.Eventually("changes are made", func() bool {
		r := person.Attempt("POST", "/api/v1/flags", `{"key":"new","type":"boolean"}`)
		return r.Status == 201 || r.Status == 409
	})
	s.Eventually("the change is listed", func() bool {
		r := person.Attempt("GET", "/api/v1/flags", "")
		return r.Status == 200 && strings.Contains(r.Body, `"new"`)
	})
	s.Eventually("health is good",
		func() bool { return strings.Contains(person.Attempt("GET", "/health", "").Body, `"status":"ok"`) })
	evaluates()
	machine.Call("POST", nodetest.FlagPath("new", "/evaluate"), `{}`).Want(200)
	s.Anonymous().Call("POST", "/api/v1/oauth/token", trade, "Content-Type", "application/x-www-form-urlencoded").Want(200)
	if code := server.End(syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
}

// signContext returns a context that is signed for an hour.
func signContext(t *testing.T, secret string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(secret)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).
		Claims(map[string]any{"targetingKey": "u", "exp": time.Now().Add(time.Hour).Unix()}).
		Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A start without database that cannot use an existing snapshot reports why, because "the database is down" alone would
// hide the file's fault.
func TestAStartWithoutDatabaseSaysWhyItCannotServeTheSnapshotOnDisk(t *testing.T) {
	t.Parallel()
	c := settings.Config{DatabaseURL: "postgres://127.0.0.1:1/x", Data: t.TempDir()}
	cause := fmt.Errorf("the database cannot be reached: %w", node.ErrUnreachable)
	if _, err := node.StartWithoutDatabase(
		t.Context(), c, cause, slog.New(slog.DiscardHandler),
	); !errors.Is(err, node.ErrUnreachable) ||
		err.Error() != cause.Error() {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(c.Data, "snapshot"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := node.StartWithoutDatabase(t.Context(), c, cause, slog.New(slog.DiscardHandler))
	if !errors.Is(err, node.ErrUnreachable) || !strings.Contains(err.Error(), "snapshot on disk") ||
		!strings.Contains(err.Error(), "damaged") {
		t.Errorf("with a damaged file: %v", err)
	}
}
