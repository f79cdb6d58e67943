package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/migrations/pgtest"
)

// helper makes the test binary print the server's address and wait to be killed.
const helper = "PGTEST_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helper) != "" {
		address, _, err := pgtest.Cluster(context.Background(), os.TempDir())
		fmt.Println(address, err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	pgtest.Main(m)
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestURL(t *testing.T) {
	t.Parallel()
	var first string
	t.Run("of its own", func(t *testing.T) {
		first = pgtest.URL(t)
		second := pgtest.URL(t)
		if first == second {
			t.Fatal("two tests share a database")
		}
		for _, address := range []string{first, second} { // still connected at the drop
			if _, err := connect(t, address).Exec(t.Context(), "CREATE TABLE only_here ()"); err != nil {
				t.Fatal(err)
			}
		}
	})
	deadline := time.Now().Add(time.Minute)
	for {
		conn, err := pgx.Connect(t.Context(), first)
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "3D000" { // invalid_catalog_name
			return
		}
		if err == nil {
			_ = conn.Close(t.Context())
		}
		if time.Now().After(deadline) {
			t.Fatal("the database still exists")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A filled database is filled once, and its copies are independent.
func TestFilled(t *testing.T) {
	t.Parallel()
	var filled atomic.Int64
	fill := func(ctx context.Context, url string) error {
		filled.Add(1)
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE TABLE filled (n int); INSERT INTO filled VALUES (1)")
		return errors.Join(err, conn.Close(ctx))
	}
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			conn := connect(t, pgtest.Filled(t, "of TestFilled", fill))
			var rows int
			if err := conn.QueryRow(t.Context(), "INSERT INTO filled SELECT 1 FROM filled RETURNING (SELECT count(*) FROM filled)").
				Scan(&rows); err != nil ||
				rows != 1 {
				t.Error(rows, err)
			}
			if n := filled.Load(); n != 1 {
				t.Errorf("filled %d times", n)
			}
		})
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			var fsync string
			if err := connect(t, pgtest.URL(t)).QueryRow(t.Context(), "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
				t.Error("fsync is", fsync, err)
			}
		})
	}
}

// A killed test process takes its server along; a later process removes its folder.
func TestKilled(t *testing.T) {
	t.Parallel()
	tmp, err := os.MkdirTemp("", "pgtest-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	start := func() (*exec.Cmd, string) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), helper+"=1", "TMPDIR="+tmp)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return cmd, strings.Fields(line)[0]
	}
	cmd, address := start()
	conn := connect(t, address)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	within(t, "the server is gone", func() bool { return conn.Ping(t.Context()) != nil })
	dirs, _ := filepath.Glob(filepath.Join(tmp, "*"))
	if len(dirs) != 1 {
		t.Fatal(dirs)
	}
	within(t, "its files are at rest", func() bool {
		_, err := os.Stat(filepath.Join(dirs[0], "postgres", "postmaster.pid"))
		return err != nil
	})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dirs[0], old, old); err != nil {
		t.Fatal(err)
	}
	start()
	if _, err := os.Stat(dirs[0]); err == nil {
		t.Error("the folder of the killed process still exists")
	}
}

func TestPgrun(t *testing.T) {
	t.Parallel()
	tmp, err := os.MkdirTemp("", "pgtest-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	pgrun := filepath.Join(tmp, "pgrun")
	if out, err := exec.Command("go", "build", "-o", pgrun, "./pgrun").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	run := func(given, script string) *exec.Cmd {
		cmd := exec.Command(pgrun, "sh", "-c", script)
		cmd.Env = append(os.Environ(), pgtest.EnvURL+"="+given, "TMPDIR="+tmp)
		cmd.Stderr = os.Stderr
		return cmd
	}
	clean := func() {
		t.Helper()
		if left, _ := filepath.Glob(filepath.Join(tmp, "flagledger-*")); len(left) > 0 {
			t.Error("left over:", left)
		}
	}

	out, err := run("postgres://given", `echo "$`+pgtest.EnvURL+`"; exit 3`).Output()
	if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != 3 || string(out) != "postgres://given\n" {
		t.Errorf("%s, %v", out, err)
	}

	// With its own server: pgrun passes a signal on to the command, and then stops the server.
	cmd := run("", `trap 'exit 7' TERM; echo "$`+pgtest.EnvURL+`"; while :; do sleep 0.05; done`)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	if u, err := url.Parse(address); err != nil || u.Hostname() != "127.0.0.1" {
		t.Errorf("the address is %s", address)
	}
	conn := connect(t, address)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Error(err)
	}
	if conn.Ping(t.Context()) == nil {
		t.Error("the server still runs")
	}
	clean()

	if out, err := run("", "kill -9 $$").Output(); err == nil || err.(*exec.ExitError).ExitCode() != 137 {
		t.Errorf("%s, %v", out, err)
	}
	clean()
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + what)
		}
	}
}
