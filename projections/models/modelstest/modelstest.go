// Package modelstest has read models for tests of their queries.
package modelstest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/migrations/pgtest"
	"flagledger/projections/models"
)

// Pool returns a new database with the empty tables of all read models.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	schema := "create schema read; set search_path = read;"
	for _, p := range models.All() {
		schema += p.Schema
	}
	Run(t, pool, schema+"reset search_path")
	return pool
}

// Run executes SQL statements.
func Run(t testing.TB, pool *pgxpool.Pool, statements string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// NewFlags returns a statement that inserts flags: from is SQL with their tenant, key and life,
// "from (...) f (tenant, key, life)".
func NewFlags(from string) string {
	return `insert into read.flags select r.* ` + from + `, jsonb_populate_record(null::read.flags, jsonb_build_object('tenant_id', f.tenant, 'key', f.key, 'version', f.life,
		'created_version', f.life, 'id', '', 'name', '', 'type', 'boolean',
		'default_value', 'false'::jsonb, 'description', '', 'tags', '[]'::jsonb, 'permanent', false, 'client_side', false,
		'links', '[]'::jsonb, 'off_serves', '', 'prerequisites', '{}'::jsonb, 'required_changed', '{}'::jsonb,
		'status', 'active', 'salt', '', 'created_at', now(), 'updated_at', now())) r;`
}
