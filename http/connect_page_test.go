package http_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
)

// pagePrograms returns the programs of a page by the name of the file that their first line tells.
func pagePrograms(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{}
	for _, found := range regexp.MustCompile("(?s)```[a-z]+\n// (\\S+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		programs[found[1]] = found[2]
	}
	return programs
}

// The programs for browsers, Go and Node in docs/connect.md evaluate with keys, and those in docs/api/keys.md sign
// contexts.
func TestProgramsOfPages(t *testing.T) {
	t.Parallel()
	node := tooltest.Find(t, "node")
	packages, err := tooltest.Install("openfeature", os.DirFS("testdata/openfeature"))
	tooltest.Check(t, "openfeature", err)
	me := nodetest.Shared(t).SignUp(nodetest.Address()).NewTenant("connect")
	me.CreateEnabledFlag("new-cart", map[string]any{"clientSide": true})
	_, browser := createKey(me, "browser", map[string]any{"origins": []any{"http://localhost:*"}})
	_, server := createKey(me, "server", nil)
	signed, page := createKey(me, "browser", map[string]any{"signed": true})
	secret := signed["signingSecret"].(string)

	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	programs := pagePrograms(t, "connect.md")
	for name, text := range pagePrograms(t, "api/keys.md") {
		programs[name] = text
	}
	address := nodetest.FreeAddress(t)
	inTest := strings.NewReplacer(
		"http://127.0.0.1:8080", me.Service.URL, "127.0.0.1:8090", address, "pk_...", browser.Token)
	// program returns the command that runs a program of a page, with addresses and keys of the test.
	program := func(name string, command ...string) *exec.Cmd {
		t.Helper()
		file := filepath.Join(folder, strings.Replace(name, "app.js", "app.mjs", 1))
		if err := os.WriteFile(file, []byte(inTest.Replace(programs[name])), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), command[0], append(command[1:], file)...)
		c.Env = append(os.Environ(), "FLAGLEDGER_KEY="+server.Token, "SIGNING_SECRET="+secret)
		return c
	}
	run := func(name string, command ...string) string {
		t.Helper()
		var complaints bytes.Buffer
		c := program(name, command...)
		c.Stderr = &complaints
		printed, err := c.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s\n%s", name, err, complaints.String(), printed, programs[name])
		}
		return strings.TrimSpace(string(printed))
	}
	nodetest.Same(t, "the web page", run("app.js", node, "--import", "./testdata/document.mjs"), "The new cart")
	nodetest.Same(t, "the program for Node", run("server.mjs", node), "new cart: true")

	binary := filepath.Join(folder, "shop")
	run("main.go", "go", "build", "-o", binary)
	shop := exec.CommandContext(t.Context(), binary)
	shop.Env = append(os.Environ(), "FLAGLEDGER_KEY="+server.Token)
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Wait() }) // after its context has ended
	me.Service.Eventually("the service in Go answers", func() bool {
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/?user=user-42", nil)
		if err != nil {
			return false
		}
		answer, err := http.DefaultClient.Do(ask)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.TrimSpace(string(text)) == "new cart: true"
	})
	for name, command := range map[string][]string{"sign.go": {"go", "run"}, "sign.mjs": {node}} {
		page.Evaluate("new-cart", `{"targetingKey":"user-42"}`, "X-Flag-Context", run(name, command...)).Want(200)
	}
}
