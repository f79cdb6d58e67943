package embedded

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/commands/tooltest"
)

func asRoot(t *testing.T) {
	t.Helper()
	var missing error
	if os.Geteuid() != 0 {
		missing = errors.New("the tests do not run as root")
	}
	tooltest.Skip(t, "root", missing)
}

// As root, with the clone below a folder that only root may enter.
func TestFolderThatPostgresCannotEnter(t *testing.T) {
	t.Parallel()
	asRoot(t)
	var missing error
	if len(passages()) == 0 {
		missing = errors.New("there is no capability to give")
	}
	tooltest.Skip(t, "capabilities", missing)
	dir := folder(t)
	closed := filepath.Dir(dir)
	must(t, os.Chmod(closed, 0o700))
	for range 2 { // first and later start
		p, err := Start(t.Context(), Options{Dir: dir, Log: testLog(t)})
		must(t, err)
		if len(p.runAs.caps) == 0 {
			t.Error("no capability was needed")
		}
		execSQL(t, p.URL(), "CREATE TABLE IF NOT EXISTS kept AS SELECT 1 AS n")
		must(t, syscall.Kill(p.PID(), syscall.SIGTERM)) // a smart shutdown: it is restarted
		within(t, "it is back", func() bool {
			conn, err := pgx.Connect(t.Context(), p.URL())
			return err == nil && conn.Close(t.Context()) == nil
		})
		must(t, p.Stop())
	}

	// The signal on the parent's death survives the capability.
	helper, postmaster := startHelper(t, dir)
	must(t, helper.Process.Kill())
	within(t, "the postmaster is gone", func() bool { return commandLine(postmaster) == "" })

	// Unreachable binaries are skipped.
	a, err := chooseAccount(filepath.Join(dir, "postgres"))
	must(t, err)
	hidden, open := filepath.Join(closed, "bin"), filepath.Join(folder(t), "bin")
	fakePostgres(t, hidden, "17.1")
	fakePostgres(t, open, "15.1")
	found, err := sources{path: []string{hidden, open}, runAs: a}.find(t.Context(), 0, dir, testLog(t))
	if err != nil || found.dir != open {
		t.Errorf("found %+v, %v", found, err)
	}
}

// Postgres cannot create a cluster for a user without a name, as in some containers. The error says what to do.
func TestUserWithoutNameMakesNoCluster(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := folder(t)
	nameless := &account{name: "54321", uid: 54321, gid: 54321}
	must(t, os.Mkdir(dir, 0o755))
	must(t, nameless.own(dir))
	bin, err := systemSources().find(t.Context(), 0, dir, testLog(t))
	must(t, err)
	err = (&Postgres{dir: dir, cluster: filepath.Join(dir, "postgres"), bin: bin, runAs: nameless, log: testLog(t)}).initCluster(
		t.Context(),
	)
	mentions(t, err, "user id 54321", "/etc/passwd", "FLAGLEDGER_DATABASE_URL")
}

// As root, Postgres runs as the owner of the cluster.
func TestClusterOfAnotherUser(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := folder(t)
	p := startHere(t, dir)
	must(t, p.Stop())
	for _, uid := range []uint32{54321, 0} { // the first has no name
		must(t, (&account{uid: uid, gid: uid}).ownAll(p.cluster))
		p = startHere(t, dir)
		out, err := exec.Command("stat", "-c", "%u", "/proc/"+strconv.Itoa(p.PID())).Output()
		must(t, err)
		if got := strings.TrimSpace(string(out)); got == "0" || uid != 0 && got != strconv.Itoa(int(uid)) {
			t.Errorf("Postgres runs as user %s on a cluster of user %d", got, uid)
		}
		must(t, p.Stop())
	}
}
