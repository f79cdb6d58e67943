package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
	"flagledger/migrations/pgtest"
)

// docExample holds commands of a page and their expected output.
type docExample struct {
	page             string
	commands, prints []string
}

// docExamples returns the examples of a page: the commands of its `sh` blocks and their output behind "# ". It omits
// streams, which print without end.
func docExamples(t *testing.T, page string) (list []docExample) {
	t.Helper()
	e, inside := docExample{page: page}, false
	next := func() {
		if len(e.commands) > 0 {
			list = append(list, e)
		}
		e = docExample{page: page}
	}
	for line := range strings.Lines(readDocument(t, page)) {
		line = strings.TrimSuffix(line, "\n")
		printed, comment := strings.CutPrefix(line, "# ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
			next()
		case !inside || strings.HasPrefix(line, "call -N"):
		case !comment:
			if len(e.prints) > 0 {
				next()
			}
			e.commands = append(e.commands, line)
		case len(e.commands) > 0:
			e.prints = append(e.prints, printed)
		}
	}
	return list
}

var refusedAnswer = regexp.MustCompile(`"status":[45]\d\d`)

// The examples of the documents print what the pages say, on a new installation. Each page continues from the
// quickstart in its own shell and folder, so that no page needs another.
func TestExamplesInDocuments(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		_, err := exec.LookPath(tool)
		tooltest.Require(t, tool, err)
	}
	p := nodetest.Build(t)
	settings := []string{"FLAGLEDGER_DATABASE_URL=" + pgtest.URL(t), "FLAGLEDGER_SUPER_USERS=me@example.com"}
	p.Serve(settings...)
	// Before its first probe, health is ok whatever the read models are.
	p.Service().Eventually("the read models are built", func() bool {
		status, err := p.Command(settings, "projections", "status").Output()
		return err == nil && !strings.Contains(string(status), "not built")
	})
	p.Service().Eventually("health is ok", func() bool {
		return strings.Contains(p.Service().Anonymous().Attempt("GET", "/health", "").Body, `"status":"ok"`)
	})

	const end = "@@ the end of example"
	var examples []docExample
	var script strings.Builder
	const quickstart = "docs/quickstart.md"
	others := slices.DeleteFunc(documents(t), func(page string) bool { return page == quickstart })
	for _, page := range slices.Insert(others, 0, quickstart) {
		open, closed := `(cd "$(mktemp -d -p .)"`, ")"
		if page == quickstart {
			open, closed = "", ""
		}
		fmt.Fprintln(&script, open)
		for _, e := range docExamples(t, page) {
			fmt.Fprintf(&script, "%s\necho '%s' %d\n", strings.Join(e.commands, "\n"), end, len(examples))
			examples = append(examples, e)
		}
		fmt.Fprintf(&script, "true\n%s\n", closed)
	}
	file := filepath.Join(t.TempDir(), "examples.sh")
	commands := strings.NewReplacer("http://127.0.0.1:8080", p.Service().URL, "bin/flagledger", p.Binary).
		Replace(script.String())
	if err := os.WriteFile(file, []byte(commands), 0o600); err != nil {
		t.Fatal(err)
	}
	bash := exec.CommandContext(t.Context(), "bash", "-u", file)
	home := t.TempDir() // for files that examples write
	bash.Env, bash.Dir = p.Command(append(settings, "FLAGLEDGER_URL="+p.Service().URL, "HOME="+home,
		"XDG_CONFIG_HOME="+filepath.Join(home, ".config"))).Env, home
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
				t.Errorf("after\n%s\n%s says\n%s\nand it is\n%s", strings.Join(e.commands, "\n"), e.page, want, printed[i])
			}
		}
		if !refused && anyLine(lines, refusedAnswer) {
			t.Errorf("%s: %s\nis refused:\n%s", e.page, strings.Join(e.commands, "\n"), printed[i])
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
