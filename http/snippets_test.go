package http_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
)

// The programs that the dashboard shows under Use in code print the flag's value.
func TestSnippets(t *testing.T) {
	t.Parallel()
	node, bash := tooltest.Find(t, "node"), tooltest.Find(t, "bash")
	tooltest.Find(t, "curl")
	_, err := os.Stat("dashboard/node_modules/typescript")
	tooltest.Require(t, "dashboard", err)
	packages, err := tooltest.Install("openfeature", os.DirFS("testdata/openfeature"))
	tooltest.Check(t, "openfeature", err)
	me := nodetest.Shared(t).SignUp(nodetest.Address()).NewTenant("snippets")
	_, browser := createKey(me, "browser", nil)
	_, server := createKey(me, "server", nil)

	for kind, c := range map[string]struct{ value, inGo, inJavaScript, inJSON string }{
		"boolean": {"false", "true", "true", `"value":true`}, // it is on
		"string":  {`"text"`, "text", "text", `"value":"text"`},
		"number":  {"1.5", "1.5", "1.5", `"value":1.5`},
		"json":    {`{"size":8}`, "map[size:8]", "{ size: 8 }", `"value":{"size":8}`},
	} {
		t.Run(kind, func(t *testing.T) {
			me := *me
			me.Service = me.Service.In(t)
			me.CreateEnabledFlag(kind, map[string]any{
				"type": kind, "defaultValue": json.RawMessage(c.value), "clientSide": true,
			})
			programs := func(key string) map[string]string {
				return snippets(t, map[string]string{
					"service": me.Service.URL, "key": kind, "type": kind, "evaluationKey": key,
				})
			}
			ofServers, ofBrowsers := programs(server.Token), programs(browser.Token)
			folder := t.TempDir()
			if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
				t.Fatal(err)
			}
			prints := func(text, want, name string, command ...string) {
				t.Helper()
				file := filepath.Join(folder, name)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				program := exec.CommandContext(t.Context(), command[0], append(command[1:], file)...)
				if got, err := program.CombinedOutput(); err != nil || !strings.Contains(string(got), want) {
					t.Errorf("%s prints %s, want %s: %v\n%s", name, got, want, err, text)
				}
			}
			prints(ofServers["go"], c.inGo, "main.go", "go", "run")
			prints(ofServers["javascript"], c.inJavaScript, "server.mjs", node)
			prints(ofBrowsers["web"], c.inJavaScript, "web.mjs", node, "--import", filepath.Join(packages, "page.mjs"))
			prints(ofServers["curl"], c.inJSON, "curl.sh", bash)
		})
	}
}

// snippets returns the programs that the dashboard shows, by language.
func snippets(t *testing.T, request map[string]string) (programs map[string]string) {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := exec.CommandContext(t.Context(), "node", "testdata/snippets.mjs", string(text)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if err := json.Unmarshal(printed, &programs); err != nil {
		t.Fatal(err)
	}
	return programs
}
