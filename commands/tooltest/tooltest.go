// Package tooltest helps tests that need external tools.
package tooltest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Folder returns the folder of tools that are not part of the project.
func Folder(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(filepath.Dir(strings.TrimSpace(string(root))), ".tools")
	return folder, os.MkdirAll(folder, 0o750)
}

// Find returns the path of a tool, or skips the test as Require does. It also looks in /usr/sbin, which may be missing
// from the PATH.
func Find(t testing.TB, tool string) string {
	t.Helper()
	path, missing := exec.LookPath(tool)
	if missing != nil {
		if system, err := exec.LookPath("/usr/sbin/" + tool); err == nil {
			path, missing = system, nil
		}
	}
	Require(t, tool, missing)
	return path
}

// Require skips a test because a tool is missing, or fails it in CI.
func Require(t testing.TB, tool string, missing error) {
	t.Helper()
	if missing != nil && os.Getenv("CI") != "" {
		t.Fatalf("%s: %v", tool, missing)
	}
	Skip(t, tool, missing)
}

// Skip skips a test because a tool is missing, which `make test` reports at its end. It does nothing if missing is nil.
func Skip(t testing.TB, tool string, missing error) {
	t.Helper()
	tools, err := Folder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(tools, "not-tested-"+tool) // a file, because go test does not show why it skips tests
	if missing == nil {
		_ = os.Remove(note)
		return
	}
	if err := os.WriteFile(
		note, fmt.Appendf(nil, "NOT TESTED WITH %s: %v\n", strings.ToUpper(tool), missing), 0o600,
	); err != nil {
		t.Error(err)
	}
	t.Skipf("NOT TESTED: %v", missing)
}
