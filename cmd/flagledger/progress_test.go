package main

import (
	"testing"
	"time"
)

func TestTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		p    progress
		want string
	}{
		{"nothing has come", progress{total: 300}, "unknown"},
		{"the first page has come", progress{total: 300, reached: map[string]int64{"flags": 100}, first: 100}, "unknown"},
		{"a page further", progress{total: 300, reached: map[string]int64{"flags": 200}, first: 100}, "1m0s"},
		{"all has come", progress{total: 300, reached: map[string]int64{"flags": 300}, first: 300}, "0s"},
	} {
		c.p.readers, c.p.began = 1, time.Now().Add(-time.Minute)
		if got := c.p.left(); got != c.want {
			t.Errorf("%s: %s is left, want %s", c.name, got, c.want)
		}
	}
}
