// Package tooltest is for tests that need tools from outside.
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

// Folder is where the project keeps tools that are not part of it.
func Folder(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(filepath.Dir(strings.TrimSpace(string(root))), ".tools")
	return folder, os.MkdirAll(folder, 0o750)
}

// Find returns the path of a tool, or skips the test as Require does. It looks in /usr/sbin, too, which is not on
// everyone's PATH.
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

// Require is Skip, but in CI the test fails.
func Require(t testing.TB, tool string, missing error) {
	t.Helper()
	if missing != nil && os.Getenv("CI") != "" {
		t.Fatalf("%s: %v", tool, missing)
	}
	Skip(t, tool, missing)
}

// Skip skips a test that a tool is missing for, which `make test` tells at its end; nil says that the tool is there.
func Skip(t testing.TB, tool string, missing error) {
	t.Helper()
	tools, err := Folder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(tools, "not-tested-"+tool) // a file, for go test does not show why tests are skipped
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
