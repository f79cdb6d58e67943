package snapshot

import (
	"testing"
	"time"

	"flagledger/projections/usage"
)

// BenchmarkCount evaluates flags without and with counting, by one caller and by 16 at once.
func BenchmarkCount(b *testing.B) {
	x := user()
	s := filled(10_000)
	noon := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	m := usage.New(nil, func(string) string { return "" }, func() time.Time { return noon })
	const client = "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"
	for _, key := range []string{"boolean", "rule", "rollout"} {
		tenant, _ := s.Tenant("t")
		f, _ := tenant.Flag(key)
		for _, counted := range []string{"none", "all"} {
			once := func(b *testing.B) {
				r, err := s.evaluate(key, x)
				if err != nil {
					b.Fatal(err)
				}
				if counted == "all" {
					m.Count("t", f.Usage(), production.ID, &r, client)
				}
			}
			b.Run(key+"/counted="+counted, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					once(b)
				}
			})
			b.Run(key+"/counted="+counted+",callers=16", func(b *testing.B) {
				b.SetParallelism(8) // times 2 processors
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						once(b)
					}
				})
			})
		}
	}
}
