package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
)

func TestCompletionScriptsParse(t *testing.T) {
	t.Parallel()
	i := nodetest.Build(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := run(i, nil, "completion", shell).succeeded().stdout
		if _, err := exec.LookPath(shell); err != nil && shell != "bash" {
			continue // not on a usual machine
		}
		check := exec.CommandContext(t.Context(), shell, "-n")
		check.Stdin = strings.NewReader(script)
		if output, err := check.CombinedOutput(); err != nil || !strings.Contains(script, i.Binary) {
			t.Errorf("%s: %v in\n%s\n%s", shell, err, script, output)
		}
	}
	run(i, nil, "completion", "tcsh").refused("tcsh", "bash")
}

// bash calls the program through the script, even if its path contains a blank.
func TestBashCompletesCommands(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	tooltest.Require(t, "bash", err)
	i := nodetest.Build(t)
	folder := filepath.Join(t.TempDir(), "my programs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, "flagledger")
	program, err := os.ReadFile(i.Binary)
	if err == nil {
		err = os.WriteFile(binary, program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"flagledger fl":                     "flags",
		"flagledger flags re":               "revert",
		"flagledger flags create k --type ": "number",
		"flagledger seg":                    "segments",
		"flagledger segments mem":           "members",
		"flagledger segments members k --l": "--list",
		"flagledger ke":                     "keys",
		"flagledger keys ro":                "rotate",
		"flagledger keys create n --kind ":  "browser",
		"flagledger eval k --ex":            "--explain",
	} {
		const script = `source <("$1" completion bash)
			export COMP_LINE=$2 COMP_POINT=${#2}
			eval "set -- $(complete -p flagledger)"
			while [ "$1" != -C ]; do shift; done
			eval "$2 flagledger"`
		c := exec.CommandContext(t.Context(), bash, "-c", script, "bash", binary, line)
		output, err := c.CombinedOutput()
		if err != nil || !slices.Contains(strings.Fields(string(output)), want) {
			t.Errorf("%q goes on with %q, want %s (%v)", line, output, want, err)
		}
	}
}
