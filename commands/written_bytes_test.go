package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

func TestBytesWrittenOnADay(t *testing.T) {
	store, _ := newMemory()
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	w := NewWriter(store, NoWait, func() time.Time { return now })
	do := func(c Command[state.Flag]) {
		t.Helper()
		if _, _, err := Do(t.Context(), w, By{}, c); err != nil {
			t.Fatal(err)
		}
	}
	do(CreateFlag{TenantID: "t", Key: "k", Type: "string", DefaultValue: textValue(10_000)})
	first := w.WrittenToday("t")
	if first < 10_000 || first > 11_000 || w.WrittenToday("u") != 0 {
		t.Errorf("a flag of 10,000 bytes wrote %d, and %d for another tenant", first, w.WrittenToday("u"))
	}
	ref := FlagRef{TenantID: "t", Key: "k"}
	do(UpdateFlag{FlagRef: ref, DefaultValue: textValue(10_000)})
	if w.WrittenToday("t") != first {
		t.Errorf("what changes nothing wrote %d", w.WrittenToday("t")-first)
	}
	do(UpdateFlag{FlagRef: ref, DefaultValue: textValue(5000)})
	if n := w.WrittenToday("t") - first; n < 15_000 || n > 16_000 {
		t.Errorf("a change from 10,000 bytes to 5,000 wrote %d", n)
	}
	w.NoteWritten("t", 7)
	w.NoteWritten("", 7)
	before := w.WrittenToday("t")
	now = now.Add(8 * time.Hour)
	if w.WrittenToday("t") != before {
		t.Error("it is forgotten during the day")
	}
	now = now.Add(time.Hour)
	if w.WrittenToday("t") != 0 {
		t.Error("it counts on the next day")
	}
	w.NoteWritten("t", 7)
	for _, back := range []struct{ days, want int }{{1, 7}, {2, 0}} {
		now = now.AddDate(0, 0, -1)
		if n := w.WrittenToday("t"); n != back.want {
			t.Errorf("with the clock set back by %d days, %d bytes count of the day that it was on", back.days, n)
		}
	}
}

// A short fact counts with the history that the read models store because of it.
func TestWhatIsKeptOfThePastCounts(t *testing.T) {
	store, _ := newMemory()
	w := NewWriter(store, NoWait, time.Now)
	wrote := func(do func() error) int {
		t.Helper()
		before := w.WrittenToday("t")
		if err := do(); err != nil {
			t.Fatal(err)
		}
		return w.WrittenToday("t") - before
	}
	flag := func(c Command[state.Flag]) func() error {
		return func() error { _, _, err := Do(t.Context(), w, By{}, c); return err }
	}
	project := func(c Command[state.Project]) func() error {
		return func() error { _, _, err := Do(t.Context(), w, By{}, c); return err }
	}
	long, ref := strings.Repeat("d", 2000), FlagRef{TenantID: "t", Key: "k"}
	tags := make([]string, 50)
	for i := range tags {
		tags[i] = fmt.Sprintf("%050d", i)
	}
	wrote(
		flag(
			CreateFlag{TenantID: "t", Key: "k", Type: "string", DefaultValue: textValue(40_000), Description: long, Tags: tags},
		),
	)
	if n := wrote(flag(UpdateFlag{FlagRef: ref, Status: new(events.FlagStatus("inactive"))})); n < 4500+400 || n > 6000 {
		t.Errorf("a status of a flag with 4,500 bytes of texts counts as %d bytes", n)
	}
	if n := wrote(
		flag(SwitchFlag{FlagRef: ref, Environment: events.EnvironmentRef{ID: "e", Name: "production"}, On: true}),
	); n < 400 ||
		n > 1500 {
		t.Errorf("a switch of a flag of 40,000 bytes counts as %d bytes", n)
	}
	wrote(project(CreateProject{TenantID: "t", ID: "p", Name: "P", Description: long}))
	if n := wrote(
		project(UpdateProject{ProjectRef: ProjectRef{TenantID: "t", ID: "p"}, Color: new("#000000")}),
	); n < 2000 ||
		n > 3000 {
		t.Errorf("a color of a project with a description of 2,000 bytes counts as %d bytes", n)
	}
}

func TestBytesOfUnpaidTenantsCountForTheirCreator(t *testing.T) {
	store, _ := newMemory()
	w := NewWriter(store, NoWait, time.Now)
	unpaid := map[string]string{"t1": "me", "t2": "me", "t3": "other"}
	w.UnpaidCreator = func(tenantID string) string { return unpaid[tenantID] } // no sum is requested
	for i, tenant := range []string{"t1", "t2", "t3", "paid"} {
		w.NoteWritten(tenant, 1<<i)
	}
	w.NoteWrittenBy("me", 16)
	w.NoteWrittenBy("", 32)
	delete(unpaid, "t1")
	if mine, theirs, nobodys := w.UnpaidWrittenToday("me"), w.UnpaidWrittenToday("other"), w.UnpaidWrittenToday(""); mine != 19 ||
		theirs != 4 ||
		nobodys != 0 {
		t.Errorf("the creators have written %d and %d, nobody %d", mine, theirs, nobodys)
	}
}
