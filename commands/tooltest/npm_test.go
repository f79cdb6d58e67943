package tooltest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Tests are skipped only if a registry cannot be reached, not if an install fails.
func TestNPMThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		script      string
		ok, skipped bool
	}{
		"all is well":                           {"exit 0", true, false},
		"the install fails":                     {`test "$1" = view`, false, false},
		"nor can the registry be reached":       {"exit 1", false, true},
		"there is no npm":                       {"", false, true},
		"the registry is away for the question": {`test "$1" = ci`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Setenv("PATH", folder)
			if c.script != "" {
				if err := os.WriteFile(filepath.Join(folder, "npm"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			err := ci(t.Context(), folder)
			if (err == nil) != c.ok || errors.Is(err, ErrUnreachable) != c.skipped {
				t.Errorf("got %v", err)
			}
		})
	}
}
