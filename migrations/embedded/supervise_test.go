package embedded

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

func TestSupervision(t *testing.T) {
	t.Parallel()
	p := startHere(t, folder(t))
	address := p.URL()
	execSQL(t, address, "CREATE TABLE kept AS SELECT 0 AS n")
	for n := 1; n <= 2; n++ {
		execSQL(t, address, "UPDATE kept SET n = n + 1")
		// A busy backend notices late that the postmaster is gone, and holds its shared memory.
		busy := connect(t, address)
		var running sync.WaitGroup
		running.Go(func() {
			_, _ = busy.Exec(context.Background(),
				"DO $$BEGIN WHILE clock_timestamp() < now() + '1 s'::interval LOOP END LOOP; END$$")
		})
		within(t, "the backend is busy", func() bool {
			return query(t, address,
				"SELECT (count(*) > 0)::text FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'") == "true"
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
		running.Wait()
	}
	must(t, p.Stop())
}

// Stop must also end a server that is being restarted.
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

		// It writes until the connection breaks; only acknowledged writes count.
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
		if n > 1 || runtime.GOOS != "linux" { // at once, while the old server may still shut down
			p = startHere(t, dir)
		}
		within(t, "the postmaster is gone", func() bool { return commandLine(postmaster) == "" })
		<-broken
		if n == 1 && runtime.GOOS == "linux" {
			p = startHere(t, dir)
		}
		got, err := strconv.ParseInt(query(t, p.URL(), "SELECT count(*)::text FROM kept WHERE n = "+strconv.Itoa(n)), 10, 64)
		must(t, err)
		// The last one may be stored without a response.
		if want := acknowledged.Load(); got != want && got != want+1 {
			t.Errorf("%d rows were acknowledged, %d are there", want, got)
		}
		must(t, p.Stop())
	}
}

// Without a parent-death signal, the next start ends the old server.
func TestServerLeftBehind(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startHere(t, dir)
	execSQL(t, p.URL(), "CREATE TABLE kept AS SELECT 'here' AS word")
	must(t, p.Stop())

	cmd := p.runAs.command(context.Background(), p.bin.dir+"/postgres", "-D", p.cluster, "-p", strconv.Itoa(p.port), "-c",
		"unix_socket_directories=")
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

// After a reboot, or in a container, another program may have the old postmaster's process id.
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
