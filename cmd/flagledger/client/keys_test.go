package client_test

import (
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestLifeOfAnEvaluationKey(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("flags", "create", "k", "--client-side").prints("browsers see it")
	me.run("flags", "enable", "k")
	me.run("keys", "create", "Backend", "--kind", "server", "--edge", "-m", "the new backend").prints(
		"key sk_...", "name Backend", "kind server, edge", "environment production", "origins -", "expires -",
		"The key is shown only now. Store it where your servers read secrets.")
	me.run("keys", "create", "Web shop", "--kind=browser", "--env=development", "--origin=https://*.example.com",
		"--origin=http://localhost:*", "--expires=2126-01-02T03:04:05Z").prints("key pk_...", "environment development",
		"origins https://*.example.com, http://localhost:*", "expires 2126-01-02T03:04:05.000000Z",
		"The key is public: it may stand in a web page or an app.")
	me.run("keys", "list").prints("NAME KIND ENVIRONMENT ORIGINS LAST USED EXPIRES ID KEY",
		"Backend server, edge production - ...",
		"Web shop browser development https://*.example.com, http://localhost:* ... pk_...")

	rotated := me.run("keys", "rotate", "Backend", "--json").object()
	before := me.with("FLAGLEDGER_TOKEN=" + rotated["key"].(string))
	before.run("eval", "k", "--key=u").prints("value true")
	last := me.run("keys", "rotate", strings.ToUpper(rotated["id"].(string)), "--end-now", "--json").object()
	before.try("eval", "k", "--key=u").refused(1, "evaluation key")
	before.with("FLAGLEDGER_TOKEN="+last["key"].(string)).run("eval", "k", "--key=u").prints("value true")

	me.run("keys", "delete", "Web shop").prints("Web shop is deleted.")
	if got := me.run("keys", "delete", rotated["id"].(string), "--json").stdout; got != "" {
		t.Errorf("a deletion prints %s", got)
	}
	if got := me.run("keys", "list", "--json").stdout; got != "[]\n" {
		t.Errorf("the list is %s", got)
	}
}

func TestSignedKeyPrintsItsSecretOnce(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	created := me.run("keys", "create", "Account", "--kind=browser", "--signed").prints("key pk_...", "signing secret ...",
		"kind browser, signed", "The signing secret is shown only now. Store it where your servers read secrets.")
	rotated := me.run("keys", "rotate", "Account", "--json").object()
	secret := rotated["signingSecret"].(string)
	if strings.Contains(created.stdout, secret) || !strings.Contains(created.stdout, rotated["key"].(string)) {
		t.Errorf("rotated, it is %v, and was\n%s", rotated, created.stdout)
	}
	if list := me.run("keys", "list", "--json").stdout; strings.Contains(list, "signingSecret") {
		t.Errorf("the list is %s", list)
	}
}

func TestErrorsNameTheKey(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.try("keys", "create", "a").refused(1, "--kind")
	me.try("keys", "create", "a", "--kind=phone").refused(1, "--kind", "browser")
	me.try("keys", "create", "a", "--kind=browser", "--edge", "--origin=http://a.example").refused(1, "edge", "origins[0]")
	me.try("keys", "create", "a", "--kind=server", "--env=moon").refused(1, "environment", "moon")
	me.try("keys", "create", "a", "--kind=server", "--expires=tomorrow").refused(1, "--expires", "tomorrow")
	me.try("keys", "rotate", "a").refused(1, `"a"`)
	me.run("keys", "create", "a", "--kind=server")
	me.run("keys", "create", "a", "--kind=server")
	me.try("keys", "delete", "a").refused(1, "2 evaluation keys", "keys list")
}
