package client_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestLifeOfASegment(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("segments", "create", "beta", "--name", "Beta testers", "--description=early", "--tag=web", "--tag=a,b", "-m", "why").
		prints("segment beta", "name Beta testers", "description early", "tags web, a,b", "included 0", "used by 0", "version 1")
	me.typing(`{"rules":[{"name":"staff","conditions":[{"attribute":"email","op":"ends_with","values":["@acme.com"]},
		{"attribute":"plan","op":"in","values":["pro"],"negate":true}]}]}`).
		run("segments", "rules", "beta", "--file=-").prints("RULE CONDITIONS",
		`staff email ends_with "@acme.com" and not plan in "pro"`)
	before := me.run("segments", "rules", "beta", "--json")
	me.typing(before.stdout).run("segments", "rules", "beta", "--file=-")
	if after := me.run("segments", "rules", "beta", "--json"); after.stdout != before.stdout {
		t.Errorf("the rules %s became %s", before.stdout, after.stdout)
	}
	me.run("segments", "members", "beta", "--add=ada", "--add=b,c", "--remove=eve").
		prints("beta, included: 2 added, 0 removed, 1 unchanged.")
	me.run("segments", "members", "beta", "--list=excluded", "--add=mallory", "-m", "no").
		prints("beta, excluded: 1 added, 0 removed, 0 unchanged.")
	if got := me.run("segments", "members", "beta").stdout; got != "ada\nb,c\n" {
		t.Errorf("the members are %q", got)
	}
	me.run("segments", "list").prints("SEGMENT RULES INCLUDED EXCLUDED USED BY VERSION UPDATED NAME",
		"beta 1 2 1 0 4 ... Beta testers")
	me.run("segments", "list", "BET", "--tag=web").prints("beta ...")

	me.run("flags", "create", "k")
	me.run("flags", "enable", "k")
	me.typing(`{"rules":[{"conditions":[{"op":"in_segment","values":["beta"]}],"serve":{"value":true}}]}`).
		run("flags", "rules", "k", "--file=-").prints(`... in_segment "beta" true`)
	me.run("segments", "create", "wide")
	me.typing(`{"rules":[{"conditions":[{"op":"in_segment","values":["beta"]}]}]}`).
		run("segments", "rules", "wide", "--file=-")
	me.run("segments", "show", "beta").prints("used by 2", "RULE CONDITIONS", "USED BY KEY ENVIRONMENT RULE",
		"flag k production ...", "segment wide - ...")
	me.run("flags", "explain", "k", "--key=ada").prints("value true", "segment beta member -")
	me.run("segments", "check", "beta", "--key=ada").prints("member yes", "because in the list included")
	me.run("segments", "check", "beta", "--key=mallory").prints("member no", "because in the list excluded")
	me.run("segments", "check", "beta", "--key=eve", "--attr=email=eve@acme.com", "--attr=plan=free").
		prints("member yes", "because rule staff", "RULE CONDITION",
			`staff email ends_with "@acme.com" holds for "eve@acme.com"`, `staff not plan in "pro" holds for "free"`)
	me.run("segments", "check", "beta", "--key=eve").prints("member no", "because no rule matches",
		`staff email ends_with "@acme.com" does not hold for ...`)

	history := me.run("segments", "history", "beta").prints("VERSION TIME CHANGE BY REASON",
		"4 ... members_added "+me.email()+" no", "1 ... created "+me.email()+" why")
	at := strings.Fields(strings.Split(history.stdout, "\n")[4])[1] // of the version 1
	me.run("segments", "check", "beta", "--key=ada", "--at", at).prints("member no")
}

func TestPrivateSegmentIsCheckedAndForgotten(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("segments", "create", "secret", "--private").prints("private yes")
	me.run("segments", "members", "secret", "--add=ada").prints("secret, included: 1 added, 0 removed, 0 unchanged.")
	me.try("segments", "members", "secret").refused(1, "the segment is private")
	me.run("segments", "check", "secret", "--key=ada").prints("member yes")
	me.run("segments", "forget", "secret", "-m", "a wish").prints("segment secret", "private yes", "included 0")
	me.run("segments", "check", "secret", "--key=ada").prints("member no")
	me.run("segments", "create", "plain")
	me.try("segments", "forget", "plain").refused(1, "the segment is not private")
}

func TestJSONOfSegmentsIsTheAnswerOfTheAPI(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	if created := me.run("segments", "create", "beta", "--json").object(); created["key"] != "beta" || created["name"] != "beta" {
		t.Errorf("a segment is %v", created)
	}
	if got := me.run("segments", "members", "beta", "--add=ada", "--json").stdout; got != `{"added":1,"removed":0,"unchanged":0}`+"\n" {
		t.Errorf("a change of members prints %s", got)
	}
	if got := me.run("segments", "members", "beta", "--json").stdout; got != `["ada"]`+"\n" {
		t.Errorf("members are %s", got)
	}
	if got := me.run("segments", "show", "beta", "--json").object(); got["usedBy"] != 0.0 {
		t.Errorf("a segment is %v", got)
	}
	if got := me.run("segments", "check", "beta", "--key=ada", "--json").object(); got["member"] != true {
		t.Errorf("a check is %v", got)
	}
	for _, arguments := range [][]string{{"segments", "list"}, {"segments", "history", "beta"}} {
		var list []map[string]any
		if err := json.Unmarshal([]byte(me.run(append(arguments, "--json")...).stdout), &list); err != nil || len(list) == 0 {
			t.Errorf("%v prints %v (%v)", arguments, list, err)
		}
	}
}

// A file has a byte order mark, CRLF, quotes and duplicates, and more members than a call takes.
func TestMembersComeFromFiles(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("segments", "create", "beta")
	var text strings.Builder
	text.WriteString("\xef\xbb\xbf\"b,\"\"c\"\r\n" + strings.Repeat("ada\r\n", 2))
	for i := range 20_000 {
		fmt.Fprintf(&text, "user-%05d\r\n", i)
	}
	file := filepath.Join(me.home, "beta.csv")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text.String())
	me.run("segments", "members", "beta", "--file", file, "-m", "import").
		prints("beta, included: 20002 added, 0 removed, 0 unchanged.")
	if list := me.run("segments", "members", "beta").stdout; !strings.HasPrefix(list, "ada\nb,\"c\nuser-00000\n") {
		t.Errorf("the members are %.99s", list)
	}
	me.typing("eve\n").run("segments", "members", "beta", "--list=excluded", "--file=-", "--json").
		prints(`{"added":1,"removed":0,"unchanged":0}`)
	me.typing("").try("segments", "members", "beta", "--file=-").refused(1, "body")
	write("a\nb,c\n")
	me.try("segments", "members", "beta", "--file", file).refused(1, "body", "line 2")
	write(text.String() + "x\n\x00\xff\n")
	me.try("segments", "members", "beta", "--file", file).refused(1, "after 20000 rows", "UTF-8")
	me.try("segments", "members", "beta", "--file", file+".missing").refused(1, "beta.csv.missing")
	me.try("segments", "members", "beta", "--file", file, "--add=a").refused(1, "--add", "--file")
	me.try("segments", "members", "beta", "--file", file, "--remove=a").refused(1, "--remove", "--file")
}

func TestErrorsNameTheSegment(t *testing.T) {
	t.Parallel()
	me := signUp(t, nodetest.Shared(t))
	me.run("segments", "create", "beta")
	me.try("segments", "create", "a b").refused(1, "validation failed: key ")
	me.try("segments", "create", "beta").refused(1, "exists")
	me.try("segments", "create", "x", "--name="+strings.Repeat("x", 201)).refused(1, "name")
	for _, command := range []string{"show", "rules", "members", "check", "history"} {
		me.try("segments", command, "missing").refused(1, "missing")
	}
	me.try("segments", "members", "beta", "--list=others").refused(1, "--list", "excluded")
	me.try("segments", "members", "beta", "--add=").refused(1, "add[0]")
	me.try("segments", "members", "beta", "--add=a", "--remove=a").refused(1, "remove[0]")
	me.typing(`{"rules":[{"conditions":[{"op":"in_segment","values":["none"]}]}]}`).
		try("segments", "rules", "beta", "--file=-").refused(1, "rules[0].conditions[0].values[0]")
	me.try("segments", "check", "beta", "--env=moon").refused(1, "environment")
	me.try("segments", "check", "beta", "--at=yesterday").refused(1, "--at", "yesterday")
}
