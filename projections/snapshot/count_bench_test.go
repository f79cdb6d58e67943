package snapshot

import "testing"

// BenchmarkCount evaluates flags without counting, counting the flag, its outcome and reason, and counting everything,
// by one caller and by 16 concurrent ones.
func BenchmarkCount(b *testing.B) {
	x := user()
	s := filled(10_000)
	t, _ := s.Tenant("t")
	at, client := t.CountTime(noon), &Client{ID: "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"}
	for _, key := range []string{"boolean", "rule", "rollout"} {
		for _, counted := range []string{"none", "flag", "all"} {
			once := func(b *testing.B) {
				r, err := s.evaluate(key, x)
				if err != nil {
					b.Fatal(err)
				}
				switch counted {
				case "flag":
					u := t.use(&r.flag.uses, key, r.flag, production.ID, at)
					u.cellOf(&r, at).byFirst.add(1, &t.uses.node.striped)
					u.markUsed(&u.evaluated, at.second)
				case "all":
					t.CountEvaluation(key, production.ID, &r, client, at)
				}
			}
			b.Run(key+"/counted="+counted, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					once(b)
				}
			})
			b.Run(key+"/counted="+counted+"/callers=16", func(b *testing.B) {
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
