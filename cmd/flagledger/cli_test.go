package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
	"flagledger/projections/models"
)

// ran is the result of a finished command.
type ran struct {
	t              testing.TB
	stdout, stderr string
	code           int
}

// run runs a command of the binary to its end.
func run(i *nodetest.Program, settings []string, arguments ...string) ran {
	i.T.Helper()
	var stdout, stderr bytes.Buffer
	command := i.Command(settings, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		i.T.Fatal(err)
	}
	// A command that does not end fails its test by its exit code.
	stuck := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
	defer stuck.Stop()
	if err := command.Wait(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			i.T.Fatal(err)
		}
	}
	return ran{i.T, stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// refused checks that the command failed with code 1 and one line on stderr that contains all the words.
func (r ran) refused(words ...string) {
	r.t.Helper()
	if r.code != 1 || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || !strings.HasSuffix(r.stderr, "\n") {
		r.t.Errorf("it ended with code %d; want 1, one line on stderr and nothing on stdout:\n%s%s", r.code, r.stderr,
			r.stdout)
	}
	for _, word := range words {
		if !strings.Contains(r.stderr, word) {
			r.t.Errorf("the line does not tell of %q: %s", word, r.stderr)
		}
	}
}

// succeeded checks that the command ended with code 0, and returns its output.
func (r ran) succeeded() ran {
	r.t.Helper()
	if r.code != 0 {
		r.t.Fatalf("it ended with code %d:\n%s", r.code, r.stderr)
	}
	return r
}

// readModels lists the names of all read models.
func readModels() (names []string) {
	for _, p := range models.All() {
		names = append(names, p.Name)
	}
	return names
}

// TestSettingsThatAreBadAreNamed of package node has the settings that are refused before a start.
func TestStartsWithBadSettingsEnd(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	file := filepath.Join(i.Dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for setting, values := range map[string][]string{
		"FLAGLEDGER_ADDR":         {"8080", "127.0.0.1:99999", "host.invalid:8080"},
		"FLAGLEDGER_METRICS_ADDR": {i.Addr},
		"FLAGLEDGER_SECRET":       {"sesame"},
		"FLAGLEDGER_DATABASE_URL": {"postgres://u:sesame@h/d?sslmode=x", "postgres://u:sesame@127.0.0.1:1/d", "postgres://u:sesame@host.invalid/d"},
	} {
		for _, value := range values {
			r := run(i, []string{setting + "=" + value})
			if r.refused(setting); strings.Contains(r.stderr, "sesame") {
				t.Errorf("a password is printed: %s", r.stderr)
			}
		}
	}
	run(i, []string{"FLAGLEDGER_DATA=" + file}).refused(file)
	run(
		i,
		[]string{"FLAGLEDGER_ENVIRONMENT=production", "FIREBASE_AUTH_EMULATOR_HOST=127.0.0.1:9099"},
	).refused("FIREBASE_AUTH_EMULATOR_HOST")
	for _, credentials := range []string{file, file + ".missing"} {
		run(
			i,
			[]string{"FIREBASE_PROJECT_ID=flags-1234", "GOOGLE_APPLICATION_CREDENTIALS=" + credentials},
		).refused("GOOGLE_APPLICATION_CREDENTIALS", credentials)
	}
	for _, arguments := range [][]string{{"migrate"}, {"projections", "status"}, {"projections", "rebuild", "--all"}, {"replay", "--tenant=t", "--flag=f"}} {
		run(i, []string{"FLAGLEDGER_LOG=xml"}, arguments...).refused("FLAGLEDGER_LOG")
	}
}

func TestDatabasesThatCannotBeUsedAreNamed(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	good, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	wrongPassword, missing := *good, *good
	wrongPassword.User = url.UserPassword(good.User.Username(), "sesame")
	missing.Path = "/there_is_none"
	for _, u := range []url.URL{wrongPassword, missing} {
		r := run(i, []string{"FLAGLEDGER_DATABASE_URL=" + u.String()})
		secret, _ := u.User.Password()
		if r.refused("FLAGLEDGER_DATABASE_URL"); strings.Contains(r.stderr, secret) {
			t.Errorf("a password is printed: %s", r.stderr)
		}
	}
	run(i, []string{"FLAGLEDGER_DATABASE_URL=" + oldServer(t)}).refused("Postgres 13", "14 or newer")

	cluster := filepath.Join(i.Dir, "postgres")
	if err := os.Mkdir(cluster, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(i, nil).refused(i.Dir, "Postgres 9")
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	run(i, nil, "projections", "rebuild", "flags", "flegs").refused("flegs", strings.Join(readModels(), ", "))
	run(i, nil, "projections", "rebuild").refused("--all")
	run(i, nil, "projections", "rebuild", "flags", "--all").refused("--all")
	run(i, nil, "projections", "verify").refused("projections verify", "--all")
	run(i, nil, "projections", "verify", "--all", "--rate=-1").refused("--rate")
	run(i, nil, "surf").refused("surf")
	run(i, nil, "replay", "--flag=f").refused("--tenant")
	run(i, nil, "replay", "--tenant=t", "--flag=f", "--project=p").refused("--flag", "--project")
	run(i, nil, "replay", "--tenant=t", "--flag=").refused("replay: --flag is empty")
	run(i, nil, "replay", "--tenant=t", "--at=3").refused("--at needs --flag, --segment or --project")
	run(i, nil, "replay", "--tenant=t", "--flag=f", "--at=0").refused("--at must be a version, or a time of RFC 3339", `"0"`)
	run(i, nil, "replay", "--tenant=t", "--flag=f", "--at=2999-01-01T00:00:00Z").refused("--at must not be in the future")
	run(i, nil, "replay", "--tenant=t", "--flag=f", "--at=3", "--diff").refused("--diff")
	if processes := i.Processes(); len(processes) > 0 {
		t.Errorf("processes %v were started", processes)
	}
}

func TestCommandsThatNeedNoDatabase(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	if got := run(i, nil, "version").succeeded().stdout; !strings.HasPrefix(got, "flagledger 1.") {
		t.Errorf("version prints %q", got)
	}
	if got := run(i, nil, "projections", "list").succeeded().stdout; got != strings.Join(readModels(), "\n")+"\n" {
		t.Errorf("projections list prints %q", got)
	}
	if files, _ := os.ReadDir(i.Dir); len(files) > 0 {
		t.Errorf("they left %v in the data folder", files)
	}
}

func TestCommandsBesideARunningServerAndAlone(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	running := i.Serve()
	c := i.Service().SignUp("me@example.com")
	c.CreateFlag("seen", nil)
	c.Call("POST", nodetest.FlagPath("seen", "/enable"), nil).Want(200)

	run(i, []string{"FLAGLEDGER_ADDR=" + nodetest.FreeAddress(t)}).refused(i.Dir, "in use")
	other := i.In(t)
	run(other, []string{"FLAGLEDGER_ADDR=" + i.Addr}).refused("FLAGLEDGER_ADDR", i.Addr, "in use")
	if files, _ := os.ReadDir(other.Dir); len(files) > 0 {
		t.Errorf("a server without its port left %v in its data folder", files)
	}

	tools(i, c.Tenant)
	gone := i.Service().SignUp("gone@example.com")
	for range 2 {
		if got, want := run(i, nil, "erase-user", strings.ToUpper(gone.UserID)).succeeded().
			stdout, "The user "+gone.UserID+" is erased.\n"; got != want {
			t.Errorf("erase-user prints %q, want %q", got, want)
		}
	}
	i.Service().
		Eventually("the erased user is refused", func() bool { return gone.Call("GET", "/api/v1/tenants", nil).Status == 403 })
	run(i, nil, "erase-user", "nobody").refused("nobody")
	run(i, nil, "erase-user").refused("id")
	for range 2 {
		if got, want := run(i, nil, "plan", "--tenant", strings.ToUpper(c.Tenant), "enhanced").succeeded().
			stdout, "The tenant "+c.Tenant+" has the plan enhanced.\n"; got != want {
			t.Errorf("plan prints %q, want %q", got, want)
		}
	}
	i.Service().Eventually("the plan is in force", func() bool {
		return c.Call("GET", "/api/v1/billing/subscription", nil).Want(200).Object()["plan"] == "enhanced"
	})
	run(i, nil, "plan", "--tenant", c.Tenant, "gold").refused("gold", "free, sandbox, standard")
	run(i, nil, "plan", "--tenant", "nobody", "free").refused("nobody")
	run(i, nil, "plan", "free").refused("--tenant")
	c.CreateFlag("later", nil) // the server was not disturbed
	c.Call("GET", nodetest.FlagPath("later"), nil).Want(200)
	if code := running.End(syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with code %d", code)
	}
	i.Alone("the end of the server")
	tools(i, c.Tenant)
	i.Alone("the commands")
}

func TestSignalsEndTheServerInOrder(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	for n, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		running := i.Serve()
		t.Logf("start %d on the folder: healthy after %v", n+1, running.Took.Round(time.Millisecond))
		if code := running.End(signal); code != 0 {
			t.Errorf("after %v it ended with code %d", signal, code)
		}
		i.Alone(signal.String())
	}
}

func TestASignalEndsAStart(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	starting := &nodetest.Process{Cmd: i.Command(nil), Program: i, Exited: make(chan struct{})}
	if err := starting.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = starting.Wait()
		close(starting.Exited)
	}()
	t.Cleanup(starting.Kill)
	i.Service().Eventually("it is about to start Postgres", func() bool {
		_, err := os.Stat(filepath.Join(i.Dir, "lock"))
		return err == nil
	})
	if code := starting.End(syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
	i.Alone("a start that was broken off")
	if code := i.Serve().End(syscall.SIGTERM); code != 0 {
		t.Errorf("the next server ended with code %d", code)
	}
}

func TestADatabaseOfTheOperatorsOwn(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	metrics := nodetest.FreeAddress(t)
	settings := []string{
		"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t),
		"FLAGLEDGER_LOG=json",
		"FLAGLEDGER_METRICS_ADDR=" + metrics,
	}
	running := i.Serve(settings...)
	for _, address := range []string{i.Addr, metrics} {
		if answer := unread(t, address); !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%s answers %q to what is no request", address, answer)
		}
	}
	c := i.Service().SignUp("me@example.com")
	c.CreateFlag("seen", nil)
	tools(i, c.Tenant, settings...)
	if code := running.End(syscall.SIGINT); code != 0 {
		t.Errorf("the server ended with code %d", code)
	}
	for line := range strings.Lines(running.Output.String()) {
		if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
			t.Errorf("the log has a line that is no JSON: %s", line)
		}
	}
	files, _ := os.ReadDir(i.Dir)
	if !slices.EqualFunc(
		files, []string{"public-keys", "snapshot"}, func(f os.DirEntry, name string) bool { return f.Name() == name },
	) {
		t.Errorf("it left %v in the data folder", files)
	}
}

// unread returns a server's answer to an unreadable request.
func unread(t *testing.T, address string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "nonsense\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// tools runs the database commands; the tenant has a flag named seen.
func tools(i *nodetest.Program, tenant string, settings ...string) {
	i.T.Helper()
	run(i, settings, "migrate").succeeded()

	status := strings.Split(strings.TrimSpace(run(i, settings, "projections", "status").succeeded().stdout), "\n")
	names := readModels()
	for n, want := range append([]string{"NAME"}, names...) {
		if len(status) != len(names)+1 || strings.Fields(status[n])[0] != want {
			i.T.Fatalf("projections status prints %q", status)
		}
		fields := strings.Fields(status[n])
		if n > 0 && !slices.Equal(fields[3:], []string{"0", "0s", "0"}) {
			i.T.Errorf("projections status prints %q: want nothing behind or parked", status[n])
		}
		// A read model without events of its own may still be at the start of the log.
		if want == "flags" && strings.HasPrefix(fields[2], "0/") {
			i.T.Errorf("projections status prints %q: want a position", status[n])
		}
	}

	one := run(i, settings, "projections", "rebuild", "audit").succeeded().stderr
	if !strings.Contains(one, "audit") || strings.Contains(one, "tenants") {
		i.T.Errorf("rebuilding the audit trail says\n%s", one)
	}
	all := run(i, settings, "projections", "rebuild", "--all").succeeded().stderr
	for _, name := range names {
		if !strings.Contains(all, name) {
			i.T.Errorf("rebuilding all says nothing of %s:\n%s", name, all)
		}
	}

	replay := strings.Split(
		strings.TrimSpace(run(i, settings, "replay", "--tenant", tenant, "--flag", "seen", "--json").succeeded().stdout), "\n",
	)
	for n, line := range replay {
		var fact struct {
			Version int
			Fact    string
		}
		if err := json.Unmarshal([]byte(line), &fact); err != nil || fact.Version != n+1 ||
			fact.Fact != []string{"flag.created", "flag.enabled"}[n] {
			i.T.Errorf("line %d of a replay is %s", n+1, line)
		}
	}
	if r := run(i, settings, "replay", "--tenant", tenant, "--flag", "unseen"); r.code != 1 || r.stdout != "" ||
		!strings.Contains(r.stderr, "never had a flag unseen") {
		i.T.Errorf("the replay of a flag that never was ends with %d: %s%s", r.code, r.stderr, r.stdout)
	}
}

// oldServer is a server that always reports Postgres 13.
func oldServer(t *testing.T) (databaseURL string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = serveOld(pgproto3.NewBackend(conn, conn))
				_ = conn.Close()
			}()
		}
	}()
	return "postgres://u@" + l.Addr().String() + "/d?sslmode=disable"
}

func serveOld(b *pgproto3.Backend) error {
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return err
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	const int4 = 23
	version := &pgproto3.RowDescription{
		Fields: []pgproto3.FieldDescription{{Name: []byte("version"), DataTypeOID: int4, DataTypeSize: 4, Format: 1}},
	}
	begin := &pgproto3.RowDescription{} // of the first query of each connection
	for _, name := range []string{"read_only", "started", "timeout", "idle", "interval", "count", "user_timeout"} {
		begin.Fields = append(begin.Fields, pgproto3.FieldDescription{Name: []byte(name)})
	}
	begins := false
	for {
		if err := b.Flush(); err != nil {
			return err
		}
		message, err := b.Receive()
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.Parse:
			begins = strings.Contains(m.Query, "pg_postmaster_start_time")
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			if m.ObjectType == 'S' {
				b.Send(&pgproto3.ParameterDescription{})
			}
			if begins {
				b.Send(begin)
			} else {
				b.Send(version)
			}
		case *pgproto3.Execute:
			if begins {
				b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("f"), []byte("1"), nil, nil, nil, nil, nil}})
			} else {
				b.Send(&pgproto3.DataRow{Values: [][]byte{binary.BigEndian.AppendUint32(nil, 13)}})
			}
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		case *pgproto3.Terminate:
			return nil
		}
	}
}

// Servers under test must not inherit the accounts and proxies of the person who runs the tests.
func TestServersUnderTestHaveNoAccountsOfOthers(t *testing.T) {
	for _, name := range []string{"STRIPE_SECRET_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "FIREBASE_PROJECT_ID", "FLAGLEDGER_SMTP_URL", "HTTPS_PROXY", "http_proxy"} {
		t.Setenv(name, "of somebody")
	}
	for _, setting := range (&nodetest.Program{}).Command(nil).Env {
		if strings.HasSuffix(setting, "=of somebody") {
			t.Errorf("a server has %s", setting)
		}
	}
}
