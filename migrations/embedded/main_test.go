package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperFolder makes the test binary start a server on that folder and wait to be killed.
const helperFolder = "EMBEDDED_TEST_HELPER_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperFolder); dir != "" {
		p, err := Start(context.Background(), Options{Dir: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("pid", p.PID())
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed, or the test is gone
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startHelper runs a server in another process, and returns that process and the postmaster's id.
func startHelper(t *testing.T, dir string) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperFolder+"="+dir)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	var pid int
	if _, err := fmt.Sscanf(line, "pid %d", &pid); err != nil {
		t.Fatal("helper: ", line)
	}
	return cmd, pid
}

// folder returns a data folder in a folder that every user may enter.
func folder(t *testing.T) string {
	t.Helper()
	top, err := os.MkdirTemp("", "flagledger-embedded-*")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	must(t, os.Chmod(top, 0o755))
	top, err = filepath.EvalSymlinks(top)
	must(t, err)
	return filepath.Join(top, "data")
}

// writeProgram writes a script while no process is forked: a child would briefly hold the open file, so that the script
// could not run.
func writeProgram(t *testing.T, path, script string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.WriteFile(path, []byte(script), 0o755))
}

func startHere(t *testing.T, dir string) *Postgres {
	t.Helper()
	began := time.Now()
	p, err := Start(t.Context(), Options{Dir: dir, Log: testLog(t)})
	must(t, err)
	t.Logf("started in %v", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// testLog writes warnings to the test's output until the test ends.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execSQL(t *testing.T, url, sql string) {
	t.Helper()
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), sql)
	must(t, err)
	must(t, conn.Close(t.Context()))
}

func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn := connect(t, url)
	var s string
	must(t, conn.QueryRow(t.Context(), sql).Scan(&s))
	must(t, conn.Close(t.Context()))
	return s
}

// within waits for a condition, long enough for a busy machine.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mentions checks that an error is one line with all of these words.
func mentions(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	t.Log(err)
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not mention %q", err, w)
		}
	}
}
