package http_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkFlagLists reads pages of 50 of a tenant's 20,000 flags in each order and with each filter. No flag changes
// meanwhile, or one changes before each page.
func BenchmarkFlagLists(b *testing.B) {
	me := nodetest.New(b).SignUp("bench@example.com")
	appendFlags(me, 20_000)
	db, err := pgx.Connect(b.Context(), me.Service.DatabaseURL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	if _, err := db.Exec(
		b.Context(),
		`insert into keep.flag_uses (tenant_id, flag_key, life, environment_id, last_evaluated)
		select f.tenant_id, f.key, 1, e.id, now() - random() * interval '20 days' from read.flags f join read.environments e on e.tenant_id = f.tenant_id where f.tenant_id = $1 and f.key > 'k02'`,
		me.Tenant,
	); err != nil {
		b.Fatal(err)
	}
	for _, query := range []string{
		"", "offset=10000", "sort=-key", "sort=createdAt", "sort=-createdAt", "sort=updatedAt", "sort=-updatedAt&offset=10000",
		"enabled=true", "enabled=false", "status=active", "status=archived", "type=boolean", "tag=none", "q=99", "q=none",
		"sort=lastEvaluatedAt", "sort=-lastEvaluatedAt", "lifecycle=live", "lifecycle=new", "evaluatedBefore=2026-01-01T00:00:00Z",
	} {
		path := "/api/v1/flags?limit=50"
		if query != "" {
			path += "&" + query
		}
		if a := me.Attempt("GET", path, ""); a.Status == 422 {
			continue
		}
		b.Run(fmt.Sprintf("query=%s", query), func(b *testing.B) {
			var took nodetest.Samples
			for b.Loop() {
				a := me.Attempt("GET", path, "")
				if a.Status != 200 {
					b.Fatal(a)
				}
				took.Add(a.Took)
			}
			took.Report(b, 50)
			took.Report(b, 99)
		})
	}
	toggled := newToggler(b, me, "k00000")
	for _, query := range []string{"", "sort=-updatedAt", "enabled=false", "type=boolean", "q=99", "sort=lastEvaluatedAt", "lifecycle=live"} {
		b.Run(fmt.Sprintf("changed/query=%s", query), func(b *testing.B) {
			var took nodetest.Samples
			for b.Loop() {
				toggled.toggle()
				a := me.Attempt("GET", "/api/v1/flags?limit=50&"+query, "")
				if a.Status != 200 {
					b.Fatal(a)
				}
				took.Add(a.Took)
			}
			took.Report(b, 50)
			took.Report(b, 99)
		})
	}
}
