package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nodePackages installs what the package-lock.json in a folder names, once, and returns a folder that has both: the files and the packages. Where
// that cannot be, the test is skipped, but never where CI is set.
func nodePackages(t *testing.T, folder string) string {
	t.Helper()
	unable := func(why string, err error) {
		t.Helper()
		text := fmt.Sprintf("%s IS NOT RUN, since %s: %v", t.Name(), why, err)
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		fmt.Fprintln(os.Stderr, text)
		t.Skip(text)
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			unable("Node.js is not installed", err)
		}
	}
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs("../../.tools")
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(tools, fmt.Sprintf("%s-%x", filepath.Base(folder), sha256.Sum256(lock))[:len(filepath.Base(folder))+13])
	if _, err := os.Stat(installed); err != nil {
		if err := os.MkdirAll(tools, 0o755); err != nil {
			t.Fatal(err)
		}
		fresh, err := os.MkdirTemp(tools, "npm-")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(fresh) }()
		if err := os.CopyFS(fresh, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		npm.Dir = fresh
		if out, err := npm.CombinedOutput(); err != nil {
			unable("npm cannot install its packages", fmt.Errorf("%w\n%s", err, out))
		}
		if err := os.Rename(fresh, installed); err != nil && !os.IsExist(err) { // as it does where another run was first
			t.Fatal(err)
		}
	}
	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return work
}
