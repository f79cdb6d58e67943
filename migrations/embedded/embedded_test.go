package embedded

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The shell's variables for Postgres tools are about another server.
func TestVariablesOfTheShell(t *testing.T) {
	for name, value := range map[string]string{
		"PGHOST": "db.example.com", "PGPORT": "1", "PGUSER": "ada", "PGDATABASE": "other", "PGPASSWORD": "x", "PGSSLMODE": "verify-full", "PGSSLROOTCERT": "/nowhere",
		"PGSSLCERT": "/nowhere", "PGTARGETSESSIONATTRS": "standby", "PGSERVICE": "none", "PGOPTIONS": "-c search_path=nowhere", "PGTZ": "Asia/Tokyo", "PGCONNECT_TIMEOUT": "soon",
		"PGREQUIREAUTH": "none", "PGAPPNAME": "other", "PGDATA": "/nowhere",
	} {
		t.Setenv(name, value)
	}
	dir := folder(t)
	p := startHere(t, dir)
	if got := query(
		t, p.URL(),
		"select concat_ws(' ', current_setting('search_path'), current_setting('timezone'), current_setting('application_name'))",
	); got != `"$user", public UTC ` {
		t.Errorf("the settings of a connection are %s", got)
	}
	t.Setenv("PGSERVICE", "none")
	other, err := Connect(t.Context(), dir) // as another process does
	must(t, err)
	query(t, other, "select 'x'")
}

func TestStartStopAndStartAgain(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	execSQL(t, p.URL(), "CREATE TABLE kept AS SELECT 'here' AS word")

	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "127.0.0.1", "unix_socket_directories": "",
		"server_encoding": "UTF8", "max_connections": "200", "timezone": "UTC", "password_encryption": "scram-sha-256",
	} {
		if got := query(t, p.URL(), "SHOW "+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := query(t, p.URL(), "SELECT datcollate FROM pg_database WHERE datname = 'flagledger'"); got != "C" {
		t.Errorf("collation is %s", got)
	}
	if got := query(
		t, p.URL(),
		"SELECT string_agg(DISTINCT type||' '||auth_method, ', ' ORDER BY type||' '||auth_method) FROM pg_hba_file_rules",
	); got != "host scram-sha-256, local reject" {
		t.Errorf("pg_hba.conf lets in by %s", got)
	}
	if _, err := pgx.Connect(t.Context(), strings.Replace(p.URL(), p.password, "wrong", 1)); err == nil {
		t.Error("a wrong password is let in")
	}
	if len(p.password) != 64 {
		t.Errorf("the password has %d characters", len(p.password))
	}
	for file, want := range map[string]os.FileMode{"postgres.password": 0o600, "postgres.log": 0o600, "postgres": 0o700} {
		info, err := os.Stat(filepath.Join(dir, file))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", file, info.Mode().Perm())
		}
	}

	_, err := Start(t.Context(), Options{Dir: dir})
	mentions(t, err, dir, "process "+strconv.Itoa(os.Getpid()))
	if !errors.Is(err, ErrInUse) {
		t.Error("not ErrInUse")
	}
	other, err := Connect(t.Context(), dir)
	if err != nil || other != p.URL() {
		t.Errorf("Connect gives %q, %v", other, err)
	}

	first, pid := p.URL(), p.PID()
	began := time.Now()
	must(t, p.Stop())
	must(t, p.Stop())
	t.Logf("stopped in %v", time.Since(began).Round(time.Millisecond))
	if p.PID() != 0 || syscall.Kill(pid, 0) == nil {
		t.Error("the postmaster is still there")
	}
	_, err = Connect(t.Context(), dir)
	mentions(t, err, dir)
	if !errors.Is(err, ErrNotRunning) {
		t.Error("not ErrNotRunning")
	}

	began = time.Now()
	p = startHere(t, dir)
	t.Logf("started again in %v", time.Since(began).Round(time.Millisecond))
	if p.URL() != first {
		t.Error("the URL changed")
	}
	if got := query(t, p.URL(), "SELECT word FROM kept"); got != "here" {
		t.Error("the row is gone")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "postgres.new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestConnectWithoutFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if _, err := Connect(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("Connect created the folder")
	}
}

func TestConnectWaitsForTheStart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	must(t, os.MkdirAll(dir, 0o755))
	lock, err := lockFolder(t.Context(), dir)
	must(t, err)
	defer lock.release()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Connect(ctx, dir)
	mentions(t, err, "still starting", strconv.Itoa(os.Getpid()))

	must(t, writePassword(dir, "secret"))
	must(t, lock.write(4711, true))
	if got, err := Connect(t.Context(), dir); err != nil || got != address(4711, "secret", "flagledger") {
		t.Error(got, err)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	before := p.URL()
	u, err := url.Parse(before)
	must(t, err)
	must(t, p.Stop())
	l, err := net.Listen("tcp", u.Host)
	must(t, err)
	defer func() { _ = l.Close() }()
	p = startHere(t, dir)
	if p.URL() == before {
		t.Error("the URL is the same")
	}
	if got := query(t, p.URL(), "SHOW port"); got == u.Port() {
		t.Error("the port is the same")
	}
}

// A port that is taken between the check and the start shows only in the log.
func TestPortTakenAtTheLastMoment(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	must(t, p.Stop())
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)))
	must(t, err)
	defer func() { _ = l.Close() }()
	_, err = p.bringUp(t.Context())
	mentions(t, err, "could not create any TCP/IP sockets")
	var se *startError
	if !errors.As(err, &se) || !se.portTaken() {
		t.Errorf("not told from others: %#v", err)
	}
}

func TestClusterOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	cluster := filepath.Join(dir, "postgres")
	must(t, os.MkdirAll(cluster, 0o700))
	_, err := Start(t.Context(), Options{Dir: dir})
	mentions(t, err, cluster, "PG_VERSION")

	must(t, os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("13\n"), 0o600))
	s := sources{installed: []string{filepath.Join(filepath.Dir(dir), "*/bin")}}
	fakePostgres(t, filepath.Join(filepath.Dir(dir), "15/bin"), "15.18")
	_, err = start(t.Context(), Options{Dir: dir}, s)
	mentions(t, err, "13", "15", dir)
	if _, err := lockFolder(t.Context(), dir); err != nil {
		t.Error("the lock is still held: ", err)
	}
}

func TestFailedStartNamesTheReason(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	must(t, p.Stop())
	must(t, os.Truncate(filepath.Join(p.cluster, "global/pg_control"), 100))
	_, err := Start(t.Context(), Options{Dir: dir})
	mentions(t, err, "could not read file", "global/pg_control", "postgres.log")

	must(t, os.Remove(filepath.Join(dir, "postgres.password")))
	_, err = Start(t.Context(), Options{Dir: dir})
	mentions(t, err, "postgres.password")
}

func TestFolderThatCannotBe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := Start(t.Context(), Options{Dir: filepath.Join(file, "data")})
	mentions(t, err, file)
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error, 1)
	go func() {
		_, err := Start(ctx, Options{Dir: dir})
		started <- err
	}()
	within(t, "initdb works", func() bool {
		list, _ := filepath.Glob(filepath.Join(dir, "postgres.new-*/PG_VERSION"))
		return len(list) > 0
	})
	cancel()
	mentions(t, <-started, "canceled")
	if left, _ := filepath.Glob(filepath.Join(dir, "postgres*")); len(left) > 1 { // the password
		t.Errorf("left behind: %v", left)
	}
	startHere(t, dir)
}

func TestLogIsRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "postgres.log")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.Truncate(path, logLimit+1))
	must(t, rotateLog(dir))
	if _, err := os.Stat(path); err == nil {
		t.Error("still there")
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != logLimit+1 {
		t.Error("the old one is not kept")
	}
}
