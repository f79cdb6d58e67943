package embedded

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

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
	if got := query(t, p.URL(), "SELECT string_agg(DISTINCT type||' '||auth_method, ', ' ORDER BY type||' '||auth_method) FROM pg_hba_file_rules"); got != "host scram-sha-256, local reject" {
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

// A port that is taken between the look and the start shows only in the log.
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

func TestSupervision(t *testing.T) {
	t.Parallel()
	p := startHere(t, folder(t))
	address := p.URL()
	execSQL(t, address, "CREATE TABLE kept AS SELECT 0 AS n")
	for n := 1; n <= 2; n++ {
		execSQL(t, address, "UPDATE kept SET n = n + 1")
		// A busy backend does not notice at once that the postmaster is gone,
		// and holds its shared memory.
		busy := connect(t, address)
		running := make(chan struct{})
		go func() {
			close(running)
			_, _ = busy.Exec(context.Background(), "DO $$BEGIN WHILE clock_timestamp() < now() + '1 s'::interval LOOP END LOOP; END$$")
		}()
		<-running
		within(t, "the backend is busy", func() bool {
			return query(t, address, "SELECT (count(*) > 0)::text FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'") == "true"
		})
		pid := p.PID()
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		within(t, "it is back", func() bool { return p.PID() != 0 && p.PID() != pid })
		if p.URL() != address {
			t.Fatal("the URL changed")
		}
		if got := query(t, address, "SELECT n::text FROM kept"); got != strconv.Itoa(n) {
			t.Errorf("after death %d the row says %s", n, got)
		}
	}
	must(t, p.Stop())
}

// A server that becomes ready and dies soon after, time after time, is started less and less often.
func TestPausesGrowWhileServersDieYoung(t *testing.T) {
	t.Parallel()
	for _, next := range []time.Duration{50 * time.Millisecond, 400 * time.Millisecond, longestPause} {
		if got := firstPause(999*time.Millisecond, next); got != next {
			t.Errorf("after a short life the pause is %v, want %v", got, next)
		}
		if got := firstPause(time.Second, next); got != 0 {
			t.Errorf("after a long life the pause is %v, want none", got)
		}
	}
}

// Stop has to end a server that is just being started again, too.
func TestStopWhileItIsDown(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	for range 3 {
		must(t, syscall.Kill(p.PID(), syscall.SIGKILL))
		must(t, p.Stop())
		if lines := readPidFile(p.cluster); len(lines) > 0 {
			pid, _ := strconv.Atoi(lines[0])
			if p.isPostmaster(pid) {
				t.Fatal("a postmaster is left")
			}
		}
		p = startHere(t, dir)
	}
}

func TestDeathOfTheParent(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	execSQL(t, p.URL(), "CREATE TABLE kept (n int)")
	must(t, p.Stop())
	for n := 1; n <= 3; n++ {
		helper, postmaster := startHelper(t, dir)
		_, err := Start(t.Context(), Options{Dir: dir})
		mentions(t, err, "process "+strconv.Itoa(helper.Process.Pid))
		address, err := Connect(t.Context(), dir)
		must(t, err)

		// Write until the connection breaks; what was acknowledged counts.
		conn := connect(t, address)
		var acknowledged atomic.Int64
		broken := make(chan struct{})
		go func() {
			defer close(broken)
			for {
				if _, err := conn.Exec(context.Background(), "INSERT INTO kept VALUES ($1)", n); err != nil {
					return
				}
				acknowledged.Add(1)
			}
		}()
		within(t, "some writes", func() bool { return acknowledged.Load() > 10 })
		must(t, helper.Process.Kill())
		_ = helper.Wait()
		if n > 1 || runtime.GOOS != "linux" { // at once, while the old server may still be shutting down
			p = startHere(t, dir)
		}
		within(t, "the postmaster is gone", func() bool { return commandLine(postmaster) == "" })
		<-broken
		if n == 1 && runtime.GOOS == "linux" {
			p = startHere(t, dir)
		}
		got, err := strconv.ParseInt(query(t, p.URL(), "SELECT count(*)::text FROM kept WHERE n = "+strconv.Itoa(n)), 10, 64)
		must(t, err)
		// The last one may be stored and its answer lost.
		if want := acknowledged.Load(); got != want && got != want+1 {
			t.Errorf("%d rows were acknowledged, %d are there", want, got)
		}
		must(t, p.Stop())
	}
}

// Where there is no signal on the parent's death, the next start ends the old server.
func TestServerLeftBehind(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	execSQL(t, p.URL(), "CREATE TABLE kept AS SELECT 'here' AS word")
	must(t, p.Stop())

	cmd := p.runAs.command(context.Background(), p.bin.dir+"/postgres", "-D", p.cluster, "-p", strconv.Itoa(p.port), "-c", "unix_socket_directories=")
	cmd.SysProcAttr = p.runAs.attributes(0)
	must(t, cmd.Start())
	gone := make(chan struct{})
	go func() { _ = cmd.Wait(); close(gone) }()
	within(t, "it accepts connections", func() bool { return p.accepting(cmd.Process.Pid) })

	p = startHere(t, dir)
	<-gone
	if got := query(t, p.URL(), "SELECT word FROM kept"); got != "here" {
		t.Error("the row is gone")
	}
}

// After a reboot, or in a container, the old postmaster's number may be that of
// any other program.
func TestOldProcessNumberInUse(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	pidFile := filepath.Join(p.cluster, "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	must(t, err)
	must(t, p.Stop())

	other := p.runAs.command(context.Background(), "/bin/sleep", "60")
	other.SysProcAttr = p.runAs.attributes(syscall.SIGKILL)
	must(t, other.Start())
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	_, rest, _ := strings.Cut(string(text), "\n")
	must(t, os.WriteFile(pidFile, []byte(strconv.Itoa(other.Process.Pid)+"\n"+rest), 0o600))
	must(t, p.runAs.own(pidFile))
	startHere(t, dir)
	if commandLine(other.Process.Pid) == "" {
		t.Error("the other program was killed")
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

// As root, with the clone below a folder that only root may enter.
func TestFolderThatPostgresCannotEnter(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: this needs root")
	}
	if len(passages()) == 0 {
		t.Skip("NOT TESTED: this needs a capability to give")
	}
	dir := folder(t)
	closed := filepath.Dir(dir)
	must(t, os.Chmod(closed, 0o700))
	for range 2 { // first and later start
		p, err := Start(t.Context(), Options{Dir: dir, Log: testLog(t)})
		must(t, err)
		if len(p.runAs.caps) == 0 {
			t.Error("no capability was needed")
		}
		execSQL(t, p.URL(), "CREATE TABLE IF NOT EXISTS kept AS SELECT 1 AS n")
		must(t, syscall.Kill(p.PID(), syscall.SIGTERM)) // a smart shutdown: it is started again
		within(t, "it is back", func() bool {
			conn, err := pgx.Connect(t.Context(), p.URL())
			return err == nil && conn.Close(t.Context()) == nil
		})
		must(t, p.Stop())
	}

	// The signal on the parent's death survives the capability.
	helper, postmaster := startHelper(t, dir)
	must(t, helper.Process.Kill())
	within(t, "the postmaster is gone", func() bool { return commandLine(postmaster) == "" })

	// Binaries that it cannot reach are passed over.
	a, err := chooseAccount(filepath.Join(dir, "postgres"))
	must(t, err)
	hidden, open := filepath.Join(closed, "bin"), filepath.Join(folder(t), "bin")
	fakePostgres(t, hidden, "17.1")
	fakePostgres(t, open, "15.1")
	found, err := sources{path: []string{hidden, open}, runAs: a}.find(t.Context(), 0, dir, testLog(t))
	if err != nil || found.dir != open {
		t.Errorf("found %+v, %v", found, err)
	}
}

// As root, a cluster that belongs to somebody is run as that somebody.
func TestClusterOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: this needs root")
	}
	dir := folder(t)
	p := startHere(t, dir)
	must(t, p.Stop())
	for _, uid := range []uint32{54321, 0} {
		must(t, (&account{uid: uid, gid: uid}).ownAll(p.cluster))
		if uid == 54321 {
			continue // nameless: refused or run, but never as root
		}
		p = startHere(t, dir)
		out, err := exec.Command("stat", "-c", "%u", "/proc/"+strconv.Itoa(p.PID())).Output()
		must(t, err)
		if got := strings.TrimSpace(string(out)); got == "0" {
			t.Error("Postgres runs as root")
		}
		must(t, p.Stop())
	}
}
