package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
	"flagledger/migrations/pgtest"
)

// readmeExample is some commands of README, and the lines that they are said to print.
type readmeExample struct {
	commands, prints []string
}

// readmeExamples are the examples of README's quick start, in order. One that prints without end is left out.
func readmeExamples(t *testing.T) (list []readmeExample) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var e readmeExample
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		printed, comment := strings.CutPrefix(line, "# ")
		if len(e.prints) > 0 && !comment {
			list, e = append(list, e), readmeExample{}
		}
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && comment && len(e.commands) > 0:
			e.prints = append(e.prints, printed)
		case inside && !comment && !strings.HasPrefix(line, "call -N"):
			e.commands = append(e.commands, line)
		}
	}
	return append(list, e)
}

var refusedAnswer = regexp.MustCompile(`"status":[45]\d\d`)

// Whoever follows README's quick start, in order, sees what it says, on a new installation. It takes some seconds: it runs the program.
func TestREADMEsExamples(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		_, err := exec.LookPath(tool)
		tooltest.Require(t, tool, err)
	}
	p := nodetest.Build(t)
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t), "FLAGLEDGER_SUPER_USERS=me@example.com"}
	p.Serve(settings...)
	// Until health is looked at first, it is good whatever the read models are.
	p.Service().Eventually("the read models are built", func() bool {
		status, err := p.Command(settings, "projections", "status").Output()
		return err == nil && !strings.Contains(string(status), "not built")
	})
	p.Service().Eventually("health is good, which is looked at every two seconds", func() bool {
		return strings.Contains(p.Service().Anonymous().Attempt("GET", "/health", "").Body, `"status":"ok"`)
	})

	examples := readmeExamples(t)
	const end = "@@ the end of example"
	var script strings.Builder
	for i, e := range examples {
		fmt.Fprintf(&script, "%s\necho '%s' %d\n", strings.Join(e.commands, "\n"), end, i)
	}
	file := filepath.Join(t.TempDir(), "examples.sh")
	commands := strings.NewReplacer("http://127.0.0.1:8080", p.Service().URL, "bin/flagledger", p.Binary).Replace(script.String())
	if err := os.WriteFile(file, []byte(commands), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-u", file)
	bash.Env, bash.Dir = p.Command(settings).Env, t.TempDir() // for files that examples write
	output, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	printed := strings.Split(string(output), end)
	if len(printed) != len(examples)+1 || len(examples) < 10 {
		t.Fatalf("%d examples printed %d times:\n%s", len(examples), len(printed), output)
	}
	for i, e := range examples {
		lines, refused := strings.Split(strings.ReplaceAll(printed[i], "\r", ""), "\n"), false
		for _, want := range e.prints {
			refused = refused || refusedAnswer.MatchString(want) || strings.HasPrefix(want, "HTTP/1.1 4")
			shape := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), regexp.QuoteMeta("..."), ".*") + "$")
			if !anyLine(lines, shape) {
				t.Errorf("after\n%s\nREADME says\n%s\nand it is\n%s", strings.Join(e.commands, "\n"), want, printed[i])
			}
		}
		if !refused && anyLine(lines, refusedAnswer) {
			t.Errorf("%s\nis refused:\n%s", strings.Join(e.commands, "\n"), printed[i])
		}
	}
}

func anyLine(lines []string, shape *regexp.Regexp) bool {
	for _, line := range lines {
		if shape.MatchString(line) {
			return true
		}
	}
	return false
}
