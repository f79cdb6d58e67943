package web

import (
	"os/exec"
	"strings"
	"testing"

	"flagledger/commands/tooltest"
)

// runPage runs the page's script in Node, under a host name other than the public URL, and prints the addresses of two
// Swagger UI calls.
const runPage = `
const settings = {};
const world = {
  window: {}, URL, location: { origin: 'http://localhost:8080', href: 'http://localhost:8080/docs' },
  document: { getElementById: () => ({ dataset: { document: '/openapi.json' } }) },
  SwaggerUIBundle: Object.assign((given) => Object.assign(settings, given), { plugins: {}, presets: {} }),
};
require('vm').runInNewContext(process.argv[1], world);
const sent = (url) => settings.requestInterceptor({ url, method: 'POST' });
console.log(sent(settings.url).url, sent('http://127.0.0.1:8080/api/v1/flags?tag=a%2Fb').url, sent('/x').method);
`

func TestCallsOfThePageGoToWhereItCameFrom(t *testing.T) {
	node := tooltest.Find(t, "node")
	script, err := docs.ReadFile("docs/page.js")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, "-e", runPage, string(script)).CombinedOutput()
	if want := "http://localhost:8080/openapi.json http://localhost:8080/api/v1/flags?tag=a%2Fb POST"; err != nil ||
		strings.TrimSpace(string(out)) != want {
		t.Errorf("%s (%v), want %s", out, err, want)
	}
}
