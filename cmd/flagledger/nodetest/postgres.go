package nodetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"flagledger/migrations/embedded"
)

// DataFolder makes a data folder for a private Postgres, which may have to run as another user.
func DataFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flagledger-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// OwnPostgres starts a Postgres that nobody else's tests use, so that it may be killed. settings are of the form name=value.
func OwnPostgres(t testing.TB, settings ...string) (dir string, p *embedded.Postgres) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a Postgres, and -short is set")
	}
	dir = DataFolder(t)
	p, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Settings: settings, Log: Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return dir, p
}

// Postmaster is the id of the process that runs Postgres on a data folder, or that is about to; 0 where there is none.
func Postmaster(dir string) int {
	pid := notedPostmaster(dir)
	if pid == 0 {
		return 0
	}
	// The file outlives a process that is killed.
	command, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || !strings.Contains(string(command), "postgres -D "+dir) {
		return 0
	}
	return pid
}

// notedPostmaster is the id that the last process to run Postgres on a data folder has written there; 0 where there is none.
func notedPostmaster(dir string) int {
	file, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(file), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return pid
}

// Outage keeps Postgres down until end is called: each one that is started is killed before it is ready.
func Outage(t testing.TB, dir string) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var killing sync.WaitGroup
	killing.Go(func() {
		killed := 0
		for ctx.Err() == nil {
			if noted := notedPostmaster(dir); noted != killed { // asking for the process each time would take most of a core
				if pid := Postmaster(dir); pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed = pid
				}
			}
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		killing.Wait()
	}
}
