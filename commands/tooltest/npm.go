package tooltest

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
	"syscall"
	"testing"
	"time"
)

const installTakes = 10 * time.Minute // at most, on a busy machine

// ErrUnreachable means that npm or its registry cannot be reached.
var ErrUnreachable = errors.New("npm cannot be reached")

// Install installs the packages of the package-lock.json among files, with the other files beside it, into a folder of
// the project's tools, once for each lock file. It returns ErrUnreachable only if npm or its registry cannot be
// reached.
func Install(name string, files fs.FS) (folder string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), installTakes)
	defer cancel()
	tools, err := Folder(ctx)
	if err != nil {
		return "", err
	}
	lockfile, err := fs.ReadFile(files, "package-lock.json")
	if err != nil {
		return "", err
	}
	folder = filepath.Join(tools, fmt.Sprintf("%s-%.8x", name, sha256.Sum256(lockfile)))
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	one, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = one.Close() }()
	// tests of other packages may install it at the same time
	if err := syscall.Flock(int(one.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if err := write(folder, files); err != nil {
		return "", err
	}
	installed := filepath.Join(folder, "installed")
	if _, err := os.Stat(installed); err == nil {
		return folder, nil
	}
	if err := ci(ctx, folder); err != nil {
		return "", err
	}
	return folder, os.WriteFile(installed, nil, 0o600)
}

// Check handles an error of Install like Require, but fails the test unless it is ErrUnreachable.
func Check(t testing.TB, name string, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
	Require(t, name, err)
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

// ci installs the packages of a folder's lock file.
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
