package http_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkStream measures the time from a change's request until each of 1,000 streams reports it.
func BenchmarkStream(b *testing.B) {
	s := nodetest.New(b)
	me := s.SignUp("me@example.com")
	me.CreateFlag("k", nil)
	streams := make([]*listening, 1000)
	for i := range streams {
		streams[i] = listen(me)
	}
	var took nodetest.Samples
	version := 1
	for b.Loop() {
		version++
		began, last := time.Now(), time.Time{}
		me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"description": fmt.Sprint(version)}).Want(200)
		for _, l := range streams {
			if e := l.next(); e.at.After(last) {
				last = e.at
			}
		}
		took.Add(last.Sub(began))
	}
	slices.Sort(took.List)
	took.Report(b, 50)
	took.Report(b, 99)
}
