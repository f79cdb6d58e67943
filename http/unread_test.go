package http

import (
	"fmt"
	"testing"
)

// One caller may leave 48 answers unread; the more are unread, the fewer are anybody's, and four always.
func TestUnreadAnswers(t *testing.T) {
	u := unread{by: map[string]int{}}
	for i, want := range []int{48, 42, 38} {
		caller := fmt.Sprint("caller ", i)
		n := 0
		for ; u.admits(func() string { return caller }); n++ {
			u.add(caller, 1)
		}
		if n != want {
			t.Errorf("%s leaves %d unread, want %d", caller, n, want)
		}
	}
	for i := range 200 {
		caller := fmt.Sprint("further ", i)
		for range fewUnread {
			if !u.admits(func() string { return caller }) {
				t.Fatalf("%s is refused with few", caller)
			}
			u.add(caller, 1)
		}
	}
	if u.admits(func() string { return "caller 0" }) {
		t.Error("one with many is not refused")
	}
	for caller, n := range u.by {
		u.add(caller, -n)
	}
	if len(u.by) > 0 || u.all.Load() != 0 {
		t.Errorf("%d callers are kept", len(u.by))
	}
}
