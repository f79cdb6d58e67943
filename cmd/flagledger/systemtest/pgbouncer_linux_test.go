package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// pgbouncer starts a pooler in front of a database.
func pgbouncer(t *testing.T, databaseURL string, settings ...string) (pooledURL string) {
	t.Helper()
	program := tooltest.Find(t, "pgbouncer")
	server, pooler := parse(t, databaseURL), parse(t, databaseURL)
	pooler.Host = nodetest.FreeAddress(t)
	password, _ := server.User.Password()
	dir := nodetest.DataFolder(t)
	users, file := filepath.Join(dir, "users"), filepath.Join(dir, "pgbouncer.ini")
	lines := append([]string{
		"[databases]", fmt.Sprintf("* = host=%s port=%s", server.Hostname(), server.Port()),
		"[pgbouncer]", "listen_addr = " + pooler.Hostname(), "listen_port = " + pooler.Port(), "unix_socket_dir =",
		"auth_type = scram-sha-256", "auth_file = " + users, "default_pool_size = 60",
	}, settings...)
	for name, text := range map[string]string{users: fmt.Sprintf("%q %q\n", server.User.Username(), password), file: strings.Join(lines, "\n") + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		nodetest.ChownToPostgres(t, name)
	}
	nodetest.Background(t, nodetest.AsPostgres(t, program, file))
	nodetest.WaitForPostgres(t, pooler.String())
	return pooler.String()
}

// A pooler with a session for each connection works like Postgres: for the schema, for nodes that share locks and
// notifications, and for rebuilds.
func TestNodesWorkBehindPgbouncerSessions(t *testing.T) {
	t.Parallel()
	pooled := pgbouncer(t, pgtest.URL(t), "pool_mode = session")
	s := nodetest.On(t, pooled+"&timezone=Asia/Tokyo")
	second := s.SecondNode()
	c := personWithFlags(s)
	c.SetRules("on", `{"rules":[{"conditions":[],"serve":{"value":true}}]}`).Want(200)
	c.SetFallthrough("on", `{"serve":{"value":false}}`).Want(200)
	other := *c
	other.Service = second
	s.Eventually("the other node evaluates the flag", func() bool {
		return strings.Contains(other.Attempt("POST", nodetest.FlagPath("on", "/evaluate"), `{}`).Body, `"value":true`)
	})
	other.Call("POST", nodetest.FlagPath("on", "/disable"), nil).Want(200)
	other.Call("POST", "/api/v1/tenants/"+c.Tenant+"/users", map[string]string{"email": nodetest.Address(), "role": "viewer"}).
		Want(201)
	s.JobsDone()
	s.Eventually("this node evaluates the flag as it now is", func() bool {
		return strings.Contains(c.Attempt("POST", nodetest.FlagPath("on", "/evaluate"), `{}`).Body, `"value":false`)
	})
	settled(s)
	before := readModels(t, s.DatabaseURL)
	store, err := postgres.Open(t.Context(), s.DatabaseURL, nodetest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := projections.Rebuild(
		t.Context(), s.DatabaseURL, store, models.All(), projections.RebuildOptions{}, nodetest.Log(t),
	); err != nil {
		t.Fatal(err)
	}
	sameReadModels(t, before, readModels(t, s.DatabaseURL))
}

// A pooler with a session for each transaction is refused at the start, whatever sessions it chooses.
func TestTransactionPoolingIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	database := pgtest.Migrated(t)
	for _, mode := range []string{"transaction", "statement"} {
		for _, order := range []string{"0", "1"} {
			pooled := pgbouncer(t, database, "pool_mode = "+mode, "server_round_robin = "+order)
			for _, busy := range []bool{false, true} {
				stop := func() {}
				if busy {
					stop = callThrough(t, pooled, 4)
				}
				for range 10 {
					_, _, err := node.OpenDatabase(t.Context(), settings.Config{DatabaseURL: pooled}, nodetest.Log(t))
					const want = "FLAGLEDGER_DATABASE_URL: the database cannot be used: a pooler there gives a session to each transaction, but locks and " +
						"notifications need one for each connection: set pool_mode = session in pgbouncer, or name Postgres itself"
					if err == nil || err.Error() != want {
						t.Errorf("pool_mode = %s, server_round_robin = %s, others work: %v: the start ends with %v", mode, order, busy,
							err)
					}
				}
				stop()
			}
		}
	}
}

// callThrough makes short calls of other clients through a pooler until stop is called.
func callThrough(t *testing.T, pooled string, clients int) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	for range clients {
		go func() {
			defer func() { done <- struct{}{} }()
			conn, err := pgx.Connect(t.Context(), pooled)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close(t.Context()) }()
			for {
				select {
				case <-ended:
					return
				case <-time.After(time.Millisecond):
				}
				if _, err := conn.Exec(t.Context(), "select pg_sleep(0.001)", pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	return func() {
		close(ended)
		for range clients {
			<-done
		}
	}
}
