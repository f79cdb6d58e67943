package http_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
)

const (
	hookInGo = `package main

import (
	"context"
	"os"

	"github.com/open-feature/go-sdk-contrib/providers/ofrep"
	"github.com/open-feature/go-sdk/openfeature"
)

func main() {
	service, key := os.Getenv("SERVICE_URL"), os.Getenv("FLAGLEDGER_KEY")
	if err := openfeature.SetProviderAndWait(ofrep.NewProvider(service, ofrep.WithBearerToken(key))); err != nil {
		panic(err)
	}
	usage := &Usage{Service: service, Key: key}
	openfeature.AddHooks(usage)
	for range 3 {
		_ = openfeature.NewDefaultClient().Boolean(context.Background(), "k", false, openfeature.EvaluationContext{})
	}
	for range 2 {
		if err := usage.Report(context.Background()); err != nil {
			panic(err)
		}
	}
}
`
	hookInNode = `import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';
import { Usage } from './usage.mjs';

const { SERVICE_URL: service, FLAGLEDGER_KEY: key } = process.env;
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: service, headers: [['Authorization', 'Bearer ' + key]] }));
const usage = new Usage(service, key);
OpenFeature.addHooks(usage);
for (let i = 0; i < 3; i++) await OpenFeature.getClient().getBooleanValue('k', false);
await usage.report();
await usage.report();
`
)

// The hooks in docs/api/usage.md report what OpenFeature's SDKs evaluate.
func TestHooksThatReportUsage(t *testing.T) {
	t.Parallel()
	node := tooltest.Find(t, "node")
	packages, err := tooltest.Install("openfeature", os.DirFS("testdata/openfeature"))
	tooltest.Check(t, "openfeature", err)
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	hooks := pagePrograms(t, "api/usage.md")
	for name, text := range map[string]string{
		"usage.go": hooks["usage.go"], "main.go": hookInGo, "usage.mjs": hooks["usage.mjs"], "main.mjs": hookInNode,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for language, command := range map[string][]string{
		"go":   {"go", "run", filepath.Join(folder, "usage.go"), filepath.Join(folder, "main.go")},
		"node": {node, filepath.Join(folder, "main.mjs")},
	} {
		t.Run(language, func(t *testing.T) {
			me := nodetest.Shared(t).SignUp(nodetest.Address()).NewTenant(language)
			me.CreateEnabledFlag("k", nil)
			_, server := createKey(me, "server", nil)
			c := exec.CommandContext(t.Context(), command[0], command[1:]...)
			c.Env = append(os.Environ(), "SERVICE_URL="+me.Service.URL, "FLAGLEDGER_KEY="+server.Token)
			if printed, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			me.Service.Eventually("the hook's counts and the service's own are shown", func() bool {
				shown := reportedIn(me, "k", "production")
				return shown["reported"] == 3.0 && shown["evaluations"] == 6.0
			})
		})
	}
}
