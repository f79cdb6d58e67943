package nodetest

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// WaitForPostgres waits until a server accepts connections.
func WaitForPostgres(t testing.TB, url string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_ = conn.Close(t.Context())
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// Execute runs statements on a database.
func Execute(t testing.TB, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// postgresUser returns the user for programs that refuse to run as root: 0 for the test's user.
func postgresUser(t testing.TB) uint32 {
	t.Helper()
	if os.Geteuid() != 0 {
		return 0
	}
	out, err := exec.Command("id", "-u", "nobody").Output()
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(id)
}

// ChownToPostgres makes the user of AsPostgres the owner of files.
func ChownToPostgres(t testing.TB, paths ...string) {
	t.Helper()
	id := postgresUser(t)
	for _, path := range paths {
		if err := os.Chown(path, int(max(id, uint32(os.Geteuid()))), -1); err != nil {
			t.Fatal(err)
		}
	}
}

// AsPostgres prepares a program that refuses to run as root. It ends with the test process.
func AsPostgres(t testing.TB, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = "/", []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if id := postgresUser(t); id != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
	}
	return cmd
}

// Background runs a program until the test ends.
func Background(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if os.Getenv("FLAGLEDGER_TEST_LOG") == "" {
		cmd.Stdout, cmd.Stderr = nil, nil
	}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // Postgres shuts down at once
		ended := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		ended.Stop()
	})
}
