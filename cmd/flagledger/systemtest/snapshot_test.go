package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

// keeping is a service with a snapshot folder, and its log.
func keeping(t *testing.T, databaseURL, eventStoreURL, publicURL, folder string) (*nodetest.Service, *nodetest.Output) {
	t.Helper()
	out := &nodetest.Output{}
	return nodetest.Start(t, databaseURL,
		settings.Config{EventStoreURL: eventStoreURL, Environment: "development", PublicURL: publicURL, Data: folder},
		slog.New(slog.NewTextHandler(out, nil))), out
}

const (
	begunFromDisk = "the snapshot begins with its copy on disk"
	copyIgnored   = "the snapshot on disk is ignored"
)

func TestAStartBeginsWithTheSnapshotOnDisk(t *testing.T) {
	nodetest.BothEngines(t, testAStartBeginsWithTheSnapshotOnDisk)
}

func testAStartBeginsWithTheSnapshotOnDisk(t *testing.T) {
	t.Parallel()
	database, folder := nodetest.Database(t), t.TempDir()
	engine := nodetest.EventStoreURL(t, database)
	s, out := keeping(t, database, engine, "http://flags.example.com", folder)
	me := s.SignUp("ada.lovelace@example.com")
	me.CreateFlag("on", nil)
	me.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	createFlagOfSegment(me)
	before := me.Evaluate("audience", `{"targetingKey":"ada"}`).Want(200)
	if strings.Contains(out.String(), begunFromDisk) {
		t.Error("the first start began with a file")
	}
	s.Node.Stop()
	file := filepath.Join(folder, "snapshot")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(file)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", info.Mode())
	}
	for _, word := range []string{"lovelace", "example.com", nodetest.Password} {
		if bytes.Contains(bytes.ToLower(data), []byte(word)) {
			t.Errorf("the file holds %q", word)
		}
	}

	// Later changes are caught up with.
	other, _ := keeping(t, database, engine, "http://flags.example.com", t.TempDir())
	meanwhile := at(other, me)
	meanwhile.CreateFlag("later", nil)
	meanwhile.Call("POST", nodetest.FlagPath("on", "/disable"), nil).Want(200)
	meanwhile.Call("POST", "/api/v1/segments/beta/members", `{"list":"included","add":["bob"]}`).Want(200)
	now := string(meanwhile.Evaluate("audience", `{"targetingKey":"ada"}`).Want(200).Body)

	restarted, out := keeping(t, database, engine, "http://flags.example.com", folder)
	if !strings.Contains(out.String(), begunFromDisk) {
		t.Errorf("the start did not begin with the file:\n%s", out)
	}
	me = at(restarted, me)
	for key, enabled := range map[string]bool{"on": false, "later": false} {
		if got := me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{}`).Want(200).Object(); got["enabled"] != enabled {
			t.Errorf("%s is %v", key, got)
		}
	}
	again := nodetest.FlagPath("audience", "/evaluate?revision="+url.QueryEscape(before.Object()["revision"].(string)))
	restarted.Eventually("the past can be read", func() bool {
		return me.Call("POST", again, `{"targetingKey":"ada"}`).Status == 200
	})
	for _, c := range []struct{ path, want string }{{again, string(before.Body)}, {nodetest.FlagPath("audience", "/evaluate"), now}} {
		nodetest.Same(t, c.path, string(me.Call("POST", c.path, `{"targetingKey":"ada"}`).Want(200).Body), c.want)
	}
	for unit, want := range map[string]bool{"ada": true, "bob": true, "eve": false} {
		nodetest.Same(t, unit, me.Evaluate("audience", map[string]string{"targetingKey": unit}).Want(200).Object()["value"], want)
	}
	me.Call("POST", nodetest.FlagPath("later", "/enable"), nil).Want(200)
	if got := me.Call("POST", nodetest.FlagPath("later", "/evaluate"), `{}`).Want(200).Object(); got["enabled"] != true {
		t.Errorf("a change after the start is not evaluated: %v", got)
	}
}

func TestASnapshotOnDiskThatCannotBeUsedIsIgnored(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "snapshot")
	database := nodetest.Database(t)
	s, _ := keeping(t, database, "", "http://flags.example.com", folder)
	me := s.SignUp("me@example.com")
	me.CreateFlag("here", nil)
	s.Node.Stop()
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		data     []byte
		database string
		because  string
	}{
		"damaged":          {flipped, database, "it is damaged"},
		"cut off":          {good[:len(good)-1], database, "it is damaged"},
		"another version":  {bytes.Replace(good, []byte("snapshot v"), []byte("snapshot v9"), 1), database, "it is of another version of the service"},
		"of another log":   {good, withFlags(t, 3), "it is of another log"},
		"ahead of the log": {good, withFlags(t, 0), "it is of another log"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "snapshot"), c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := node.Migrate(t.Context(), c.database, nodetest.Log(t)); err != nil {
				t.Fatal(err)
			}
			out := &nodetest.Output{}
			config := s.Config
			config.Data = folder
			n, err := node.Start(t.Context(), config, c.database, slog.New(slog.NewTextHandler(out, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer n.Stop()
			<-n.Ready
			if !strings.Contains(out.String(), copyIgnored) || !strings.Contains(out.String(), c.because) {
				t.Errorf("it logged:\n%s", out)
			}
		})
	}
}

// A log restored from an older copy starts like the file's log, and may have grown past the file since.
func TestASnapshotOfEventsThatARestoreTookBackIsIgnored(t *testing.T) {
	t.Parallel()
	const publicURL = "http://flags.example.com"
	var me *nodetest.Client
	restore := func() (databaseURL string) {
		return pgtest.Filled(t, "saved for a restore", func(_ context.Context, url string) error {
			s, _ := keeping(t, url, "", publicURL, t.TempDir())
			me = s.SignUp("me@example.com")
			s.Node.Stop()
			return nil
		})
	}
	folder := t.TempDir()
	before, _ := keeping(t, restore(), "", publicURL, folder)
	at(before, me).CreateFlag("lost", nil)
	before.Node.Stop()

	restored := restore()
	after, _ := keeping(t, restored, "", publicURL, t.TempDir())
	for i := range 3 {
		at(after, me).CreateFlag(fmt.Sprint("new-", i), nil)
	}
	after.Node.Stop()
	s, out := keeping(t, restored, "", publicURL, folder)
	if !strings.Contains(out.String(), copyIgnored) || !strings.Contains(out.String(), "it is of another log") {
		t.Errorf("it logged:\n%s", out)
	}
	me = at(s, me)
	me.Call("POST", nodetest.FlagPath("lost", "/evaluate"), `{}`).Want(404)
	me.Call("POST", nodetest.FlagPath("new-0", "/evaluate"), `{}`).Want(200)
}

// The folder is needed only for the private Postgres, and for the secret if the settings have none.
func TestADataFolderThatCannotBeMadeEndsAStartOnlyWhereItIsNeeded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	database := nodetest.Database(t)
	out := &nodetest.Output{}
	c := settings.Config{DatabaseURL: database, Environment: "development", Data: filepath.Join(file, "data")}
	s := nodetest.Start(t, database, c, slog.New(slog.NewTextHandler(out, nil)))
	me := s.SignUp("me@example.com")
	me.CreateFlag("on", nil)
	me.Call("POST", nodetest.FlagPath("on", "/evaluate"), `{}`).Want(200)
	s.Node.Stop()
	if !strings.Contains(out.String(), "FLAGLEDGER_DATA cannot be used") ||
		strings.Contains(out.String(), "could not be") {
		t.Errorf("it logged:\n%s", out)
	}
	for _, setting := range []string{"DatabaseURL", "Secret"} {
		c := s.Config
		c.Data = filepath.Join(file, "data")
		if setting == "Secret" {
			c.Secret = ""
		} else {
			c.DatabaseURL = ""
		}
		n, err := node.Start(t.Context(), c, database, nodetest.Log(t))
		if err == nil {
			n.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), "FLAGLEDGER_DATA") {
			t.Errorf("without %s: %v", setting, err)
		}
	}
}

// createFlagOfSegment creates a flag that is true for ada, a member of a segment.
func createFlagOfSegment(me *nodetest.Client) {
	me.Call("POST", "/api/v1/segments", `{"key":"beta"}`).Want(201)
	me.Call("POST", "/api/v1/segments/beta/members", `{"list":"included","add":["ada"]}`).Want(200)
	me.CreateEnabledFlag("audience", nil)
	me.SetFallthrough("audience", `{"serve":{"value":false}}`).Want(200)
	me.SetRules("audience", `{"rules":[{"conditions":[{"op":"in_segment","values":["beta"]}],"serve":{"value":true}}]}`).Want(200)
}

// withFlags creates a database with some flags in its log.
func withFlags(t *testing.T, n int) (databaseURL string) {
	if n == 0 {
		return pgtest.Migrated(t)
	}
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	for i := range n {
		me.CreateFlag(fmt.Sprint("other-", i), nil)
	}
	return s.DatabaseURL
}

// at returns the same caller at another node.
func at(s *nodetest.Service, c *nodetest.Client) *nodetest.Client {
	moved := *c
	moved.Service = s
	return &moved
}
