package http_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
)

// Generated clients of the OpenAPI document compile and pass the main story: sign up, create a flag, evaluate it,
// switch it on, evaluate it again, read its history.

// workshop is a folder for a generated client, with the document in openapi.json.
type workshop struct {
	t      *testing.T
	folder string
	s      *nodetest.Service
}

func newWorkshop(t *testing.T, files string) workshop {
	t.Helper()
	w := workshop{t, t.TempDir(), nodetest.Shared(t)}
	if err := os.CopyFS(w.folder, os.DirFS(files)); err != nil {
		t.Fatal(err)
	}
	document := w.s.Anonymous().Call("GET", "/openapi.json", nil).Want(200)
	if err := os.WriteFile(filepath.Join(w.folder, "openapi.json"), document.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs a program in the folder.
func (w workshop) run(program string, arguments ...string) error {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), program, arguments...)
	command.Dir = w.folder
	// With -trimpath, Go finds in its cache what it built in another folder.
	command.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "SERVICE_URL="+w.s.URL,
		"STORY_EMAIL="+nodetest.Address())
	out, err := command.CombinedOutput()
	w.t.Logf("%s %v\n%s", program, arguments, out)
	return err
}

func (w workshop) mustRun(program string, arguments ...string) {
	w.t.Helper()
	if err := w.run(program, arguments...); err != nil {
		w.t.Fatalf("%s %v: %v", program, arguments, err)
	}
}

func TestAGeneratedClientForGo(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, "testdata/clients/go")
	tooltest.Require(t, "generated-go-client", w.run("go", "mod", "download"))
	if err := os.Mkdir(filepath.Join(w.folder, "client"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.mustRun("go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", "client/client.go",
		"openapi.json")
	w.mustRun("go", "run", ".")
}

func TestAGeneratedClientForTypeScript(t *testing.T) {
	t.Parallel()
	packages, err := tooltest.Install("typescript-client", os.DirFS("testdata/clients/typescript"))
	tooltest.Check(t, "typescript-client", err)
	w := newWorkshop(t, "testdata/clients/typescript")
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(w.folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	w.mustRun("node", "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts")
	w.mustRun("node", "node_modules/typescript/bin/tsc", "-p", ".")
	w.mustRun("node", "story.js")
}
