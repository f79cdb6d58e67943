package http_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
)

// benchFacts is the size of the trail in BenchmarkAudit.
const benchFacts = 1_000_000

// BenchmarkAudit reads a page of 50 with each filter from a trail of a million facts, and exports all. Filters by time
// select a month in the middle.
func BenchmarkAudit(b *testing.B) {
	me := nodetest.New(b).SignUp("me@example.com")
	fillTrail(me)
	const day = "2026-03-01T00:00:00Z"
	for _, query := range []string{
		"", "action=flag.updated", "action=flag.enabled", "action=tenant.updated", "userId=u7", "userId=" + me.UserID, "resourceType=flag", "resourceType=project", "resourceId=k77", "environment=staging",
		"from=" + day, "to=" + day, "q=launch", "q=nothing-has-this", "userId=u7&action=flag.updated", "resourceId=k77&to=" + day, "environment=staging&q=launch",
	} {
		b.Run("page?"+query, func(b *testing.B) {
			var took nodetest.Samples
			entries := 0
			for b.Loop() {
				r := me.Attempt("GET", auditPath+"?"+query, "")
				if r.Status != 200 {
					b.Fatal(r)
				}
				took.Add(r.Took)
				entries = strings.Count(r.Body, `"action"`)
			}
			took.Report(b, 50)
			took.Report(b, 99)
			b.ReportMetric(float64(entries), "entries")
		})
	}
	completeTree(me)
	for _, query := range []string{"/checkpoint", "/proof?flag=k77&version=500", "/consistency?from=123456"} {
		b.Run(query[1:], func(b *testing.B) {
			var took nodetest.Samples
			for b.Loop() {
				r := me.Attempt("GET", auditPath+query, "")
				if r.Status != 200 {
					b.Fatal(r)
				}
				took.Add(r.Took)
			}
			took.Report(b, 50)
			took.Report(b, 99)
		})
	}
	for _, format := range []string{"ndjson", "csv"} {
		b.Run("export/"+format, func(b *testing.B) {
			stop, largest := make(chan struct{}), make(chan uint64)
			go func() { largest <- nodetest.LargestHeap(stop) }()
			began := time.Now()
			for b.Loop() {
				benchExport(b, me, format)
			}
			b.ReportMetric(float64(benchFacts*b.N)/time.Since(began).Seconds(), "facts/s")
			close(stop)
			b.ReportMetric(float64(<-largest)/(1<<20), "heap-MB")
		})
	}
}

func benchExport(b *testing.B, me *nodetest.Client, format string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, me.Service.URL+exportPath+"?format="+format, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+me.Token)
	r.Header.Set("X-Tenant-ID", me.Tenant)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if size, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK ||
		size < 100*benchFacts {
		b.Fatalf("%d, %d bytes, %v", answer.StatusCode, size, err)
	}
}

// fillTrail writes facts into a tenant's trail, as the projection would: a thousand flags and a hundred people over a
// year, some projects, and a reason for every hundredth.
func fillTrail(c *nodetest.Client) {
	c.Service.T.Helper()
	sql(c.Service, fmt.Sprintf(`
		insert into read.audit select '%[1]s', n, 1000000 + n, 1000000 + n, gen_random_uuid(), timestamptz '2026-01-01Z' + n * interval '10 s',
			case when n %% 5000 = 0 then 'tenant.updated' when n %% 50 = 0 then 'project.updated' when n %% 7 = 0 then 'flag.updated' when n %% 2 = 0 then 'flag.enabled' else 'flag.disabled' end,
			case when n %% 5000 = 0 then 'tenant' when n %% 50 = 0 then 'project' else 'flag' end, case when n %% 50 = 0 then 'p' || n / 50 %% 20 else 'k' || n %% 1000 end,
			'The name of it', case when n %% 50 = 0 or n %% 7 = 0 then null when n %% 10 = 0 then 'staging' else 'production' end,
			'{"enabled":{"from":false,"to":true}}', 'user', case when n %% 1000 = 0 then '%[2]s' else 'u' || n %% 100 end, gen_random_uuid()::text, case when n %% 100 = 0 then 'launch day' else '' end, n / 1000 + 1, sha256(n::text::bytea)
			from generate_series((select max(n) + 1 from read.audit where tenant_id = '%[1]s'), %[3]d - 1) n;
		insert into keep.people (user_id, email, display_name, created_at) select 'u' || n, 'u' || n || '@example.com', 'Person ' || n, now() from generate_series(0, 99) n;
		analyze read.audit; analyze keep.people`, c.Tenant, c.UserID, benchFacts))
}

// completeTree changes the tenant until the trail has all nodes of its tree, which it adds at every 64th fact.
func completeTree(c *nodetest.Client) {
	c.Service.T.Helper()
	conn, err := pgx.Connect(c.Service.T.Context(), c.Service.DatabaseURL)
	if err != nil {
		c.Service.T.Fatal(err)
	}
	defer func() { _ = conn.Close(c.Service.T.Context()) }()
	c.Service.Eventually("the tree has its nodes", func() (complete bool) {
		c.CreateProject("another")
		if err := conn.QueryRow(c.Service.T.Context(), `select exists (select from read.audit_nodes where level = 16)`).
			Scan(&complete); err != nil {
			c.Service.T.Fatal(err)
		}
		return complete
	})
}
