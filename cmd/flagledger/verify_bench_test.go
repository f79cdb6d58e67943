package main

import (
	"path/filepath"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// BenchmarkVerify verifies the 100,000 facts of a tenant: in an export, and in Postgres against the audit trail.
func BenchmarkVerify(b *testing.B) {
	const flags, each = 20_000, 5
	url, store := nodetest.BenchStore(b)
	nodetest.Seed(b, store, flags)
	log := nodetest.Log(b)
	file := filepath.Join(b.TempDir(), "facts.ndjson")
	if _, _, err := exportFacts(b.Context(), store, "t", "", file, log); err != nil {
		b.Fatal(err)
	}
	for _, p := range models.All() {
		if p.Name == "audit" {
			if err := projections.Rebuild(
				b.Context(), url, store, []projections.Projection{p}, projections.RebuildOptions{Force: true}, log,
			); err != nil {
				b.Fatal(err)
			}
		}
	}
	for name, verify := range map[string]func() error{
		"export": func() error { return verifyTrailCommand{Export: file}.verifyFile() },
		"store":  func() error { return verifyTrailCommand{Tenant: "t"}.verifyStore(b.Context(), url, store, log) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				began := time.Now()
				if err := verify(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(flags*each/time.Since(began).Seconds(), "facts/s")
			}
		})
	}
}
