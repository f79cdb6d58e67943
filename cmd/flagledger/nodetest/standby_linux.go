package nodetest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"flagledger/commands/tooltest"
	"flagledger/migrations/embedded"
)

// Standby starts a standby of a Postgres. Each commit on the primary waits until the standby has applied it.
func Standby(t testing.TB, primary *embedded.Postgres) (databaseURL string) {
	t.Helper()
	command, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", primary.PID()))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(command)
	_, missing := os.Stat(filepath.Join(bin, "pg_basebackup"))
	tooltest.Require(t, "pg_basebackup", missing)
	cluster := filepath.Join(DataFolder(t), "postgres")
	ChownToPostgres(t, filepath.Dir(cluster))
	backup := AsPostgres(t, filepath.Join(bin, "pg_basebackup"), "--dbname="+primary.URL(), "--pgdata="+cluster,
		"--checkpoint=fast", "--write-recovery-conf")
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	address := FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	Background(
		t,
		AsPostgres(t, command, "-D", cluster, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c",
			"unix_socket_directories=", "-c", "max_connections=200"),
	)
	u, err := url.Parse(primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Host = address
	WaitForPostgres(t, u.String())
	Execute(t, primary.URL(), "alter system set synchronous_standby_names = '*'",
		"alter system set synchronous_commit = 'remote_apply'", "select pg_reload_conf()")
	return u.String()
}
