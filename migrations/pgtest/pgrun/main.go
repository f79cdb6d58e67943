// Command pgrun runs a command with FLAGLEDGER_TEST_DATABASE_URL set to a
// private throw-away Postgres, so that all packages of a test run share one:
//
//	go run ./migrations/pgtest/pgrun go test ./...
//
// If it is set already, the command just runs. The exit code is the command's.
//
// With -memory the server's files are kept in memory where the system has a
// folder for that with room enough, and so are temporary files of the command,
// but for those of the go tool: tests spend a third of their time on a disk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"flagledger/migrations/pgtest"
)

func main() {
	memory := flag.Bool("memory", false, "keep the server's and temporary files in memory, where there is room")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: pgrun [-memory] COMMAND [ARGUMENT...]") }
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	code, err := run(*memory && roomInMemory(), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgrun:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// memoryFolder is a folder that Linux holds in memory.
const memoryFolder = "/dev/shm"

// roomInMemory reports whether memoryFolder has room for the files of all tests, about 3 GiB, mostly Postgres logs.
func roomInMemory() bool {
	var disk syscall.Statfs_t
	return syscall.Statfs(memoryFolder, &disk) == nil &&
		uint64(disk.Bavail)*uint64(disk.Bsize) >= 6<<30 //nolint:unconvert // the types differ between systems
}

// runsPrograms reports whether programs in a folder may run. Containers often forbid it for shared memory.
func runsPrograms(folder string) bool {
	const noexec = 8 // ST_NOEXEC, see statvfs(3)
	var disk syscall.Statfs_t
	return syscall.Statfs(folder, &disk) == nil && disk.Flags&noexec == 0
}

func run(inMemory bool, args []string) (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	parent := os.TempDir()
	if inMemory {
		files, failed := os.MkdirTemp(memoryFolder, "flagledger-tests-")
		if failed != nil {
			return 1, failed
		}
		defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
		if err := os.Chmod(files, 0o755); err != nil { // Postgres may run as another user
			return 1, err
		}
		if runsPrograms(files) { // some tests build programs and run them
			cmd.Env = append(cmd.Env, "TMPDIR="+files, "GOTMPDIR="+parent)
		}
		parent = files
	}
	if os.Getenv(pgtest.EnvURL) == "" {
		url, stop, failed := startCluster(signals, parent)
		if failed != nil {
			return 1, failed
		}
		defer func() { err = errors.Join(err, stop()) }()
		cmd.Env = append(cmd.Env, pgtest.EnvURL+"="+url)
	}

	if err := cmd.Start(); err != nil {
		return 127, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			var ee *exec.ExitError
			switch {
			case err == nil:
				return 0, nil
			case !errors.As(err, &ee):
				return 1, err
			}
			if w, ok := ee.Sys().(syscall.WaitStatus); ok && w.Signaled() {
				return 128 + int(w.Signal()), nil
			}
			return ee.ExitCode(), nil
		}
	}
}

// startCluster gives up on the first signal.
func startCluster(signals <-chan os.Signal, parent string) (string, func() error, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return pgtest.Cluster(ctx, parent)
}
