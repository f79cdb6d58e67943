package systemtest

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
)

// The first changes of a new installation are not before the reactions' first checkpoint.
func TestTheFirstChangesMakeJobs(t *testing.T) { nodetest.BothEngines(t, testTheFirstChangesMakeJobs) }

func testTheFirstChangesMakeJobs(t *testing.T) {
	t.Parallel()
	database := nodetest.Database(t)
	connect := func() *pgx.Conn {
		db, err := pgx.Connect(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db, lock := connect(), connect()
	defer func() { _ = db.Close(t.Context()) }()
	if _, err := db.Exec(t.Context(), `delete from keep.reactions`); err != nil {
		t.Fatal(err)
	}
	// Reactions cannot run while another session holds their lock.
	if _, err := lock.Exec(t.Context(), `select pg_advisory_lock(hashtext('flagledger reactions'))`); err != nil {
		t.Fatal(err)
	}
	s := nodetest.On(t, database)
	me := s.SignUp(nodetest.Address())
	me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": nodetest.Address(), "role": "viewer"}).
		Want(201)
	if err := lock.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the invitation has a job", func() bool {
		var n int
		if err := db.QueryRow(t.Context(), `select count(*) from jobs.river_job where kind = 'mail.member_invitation' and args ->> 'tenantId' = $1`, me.Tenant).
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
}
