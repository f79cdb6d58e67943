// Package npmtest installs npm packages that tests need.
package npmtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const installTakes = 10 * time.Minute // at most, on a machine that is busy

// ErrUnreachable says that npm or its registry cannot be reached.
var ErrUnreachable = errors.New("npm cannot be reached")

// Install installs what the package-lock.json among files says, and files beside it, into a folder of the project's tools, once for each lock. The
// error is ErrUnreachable where npm or its registry cannot be reached, and not where it can and the install fails.
func Install(name string, files fs.FS) (folder string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), installTakes)
	defer cancel()
	root, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	lockfile, err := fs.ReadFile(files, "package-lock.json")
	if err != nil {
		return "", err
	}
	tools := filepath.Join(filepath.Dir(strings.TrimSpace(string(root))), ".tools")
	folder = filepath.Join(tools, fmt.Sprintf("%s-%.8x", name, sha256.Sum256(lockfile)))
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	one, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = one.Close() }()
	if err := syscall.Flock(int(one.Fd()), syscall.LOCK_EX); err != nil { // other packages' tests install it too
		return "", err
	}
	if err := write(folder, files); err != nil {
		return "", err
	}
	installed := filepath.Join(folder, "installed")
	if _, err := os.Stat(installed); err == nil {
		return folder, nil
	}
	warning := filepath.Join(tools, "not-tested-"+name) // a file, for go test does not show what tests say that do not fail
	if err := ci(ctx, folder); err != nil {
		if errors.Is(err, ErrUnreachable) {
			err = errors.Join(err, os.WriteFile(warning, fmt.Appendf(nil, "NOT TESTED WITH %s: %v\n", strings.ToUpper(name), err), 0o600))
		}
		return "", err
	}
	if err := os.Remove(warning); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return folder, os.WriteFile(installed, nil, 0o600)
}

// Check skips a test where Install could not reach npm, which `make test` tells at its end, and fails it in CI and for any other error.
func Check(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, ErrUnreachable) && os.Getenv("CI") == "":
		t.Skipf("NOT TESTED: %v", err)
	case err != nil:
		t.Fatal(err)
	}
}

func write(folder string, files fs.FS) error {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, entry.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ci installs what a folder's lock file says.
func ci(ctx context.Context, folder string) error {
	run := func(arguments ...string) ([]byte, error) {
		command := exec.CommandContext(ctx, "npm", arguments...)
		command.Dir = folder
		return command.CombinedOutput()
	}
	output, err := run("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	if err == nil {
		return nil
	}
	err = fmt.Errorf("npm ci: %w: %s", err, bytes.TrimSpace(output))
	if _, unreachable := run("view", "npm", "version", "--prefer-online", "--fetch-retries=0"); unreachable != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}
