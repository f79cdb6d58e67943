package rest

import (
	"fmt"
	"testing"
)

// One caller may leave 48 responses unread. The more responses are unread in total, the fewer each caller may have: at
// least four until the total is very large, and always one.
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
	for i := range 400 {
		caller := fmt.Sprint("further ", i)
		want := 1
		if u.all.Load() <= 2*maxUnread-minPerCaller {
			want = minPerCaller
		}
		n := 0
		for ; n < minPerCaller && u.admits(func() string { return caller }); n++ {
			u.add(caller, 1)
		}
		if n != want {
			t.Fatalf("%s leaves %d unread beside %d, want %d", caller, n, u.all.Load(), want)
		}
	}
	if all := u.all.Load(); all > 2*maxUnread+400 {
		t.Errorf("%d are unread", all)
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

func TestRequestsBesideUnreadAnswersAreCounted(t *testing.T) {
	a := newCore(anonymous(100))
	a.unread.add("site 192.0.2.1/32", 48)
	for range 2 {
		if w := a.from("192.0.2.1:4711", "GET", "/health"); w.Code != 429 {
			t.Errorf("it answers %d", w.Code)
		}
	}
	families, err := a.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "flagledger_unread_refused_total" && f.GetMetric()[0].GetCounter().GetValue() == 2 {
			return
		}
	}
	t.Error("the metrics do not count them")
}
