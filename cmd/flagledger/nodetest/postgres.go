package nodetest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"flagledger/migrations/embedded"
)

// DataFolder creates a data folder for a private Postgres, which may run as another user.
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

// OwnPostgres starts a Postgres for this test alone, so that it may be killed. settings have the form name=value.
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

// Postmaster returns the id of the process that runs Postgres on a data folder or is about to, or 0.
func Postmaster(dir string) int {
	file, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(file), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	// The file stays after the process is killed.
	if !strings.Contains(commandOf(pid), "postgres -D "+dir) {
		return 0
	}
	return pid
}

// Outage stops Postgres and prevents its start until end is called, by removing its control file.
func Outage(t testing.TB, dir string) (end func()) {
	t.Helper()
	control := filepath.Join(dir, "postgres", "global", "pg_control")
	if err := os.Rename(control, control+".away"); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		if err := os.Rename(control+".away", control); err != nil {
			t.Error(err)
		}
	})
	if pid := Postmaster(dir); pid > 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			end()
			t.Fatal(err)
		}
	}
	return end
}
