package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

// wrote is Quotas that count what was written.
type wrote struct {
	NoQuotas
	bytes map[string]int
}

func (w wrote) Wrote(tenantID string, bytes int) { w.bytes[tenantID] += bytes }

func TestBytesThatChangesWrite(t *testing.T) {
	store, _ := newMemory()
	q := wrote{bytes: map[string]int{}}
	w := NewWriter(store, NoWait, q, time.Now)
	do := func(c commands.Command[state.Flag]) {
		t.Helper()
		if _, _, err := Do(t.Context(), w, By{}, c); err != nil {
			t.Fatal(err)
		}
	}
	do(commands.CreateFlag{TenantID: "t", Key: "k", Type: "string", DefaultValue: textOf(10_000)})
	first := q.bytes["t"]
	if first < 10_000 || first > 11_000 || q.bytes["u"] != 0 {
		t.Errorf("a flag of 10,000 bytes wrote %d, and %d for another tenant", first, q.bytes["u"])
	}
	ref := commands.FlagRef{TenantID: "t", Key: "k"}
	do(commands.UpdateFlag{FlagRef: ref, DefaultValue: textOf(10_000)})
	if q.bytes["t"] != first {
		t.Errorf("what changes nothing wrote %d", q.bytes["t"]-first)
	}
	do(commands.UpdateFlag{FlagRef: ref, DefaultValue: textOf(5000)})
	if n := q.bytes["t"] - first; n < 15_000 || n > 16_000 {
		t.Errorf("a change from 10,000 bytes to 5,000 wrote %d", n)
	}
}

// A short fact counts with the history that the read models store because of it.
func TestWhatIsKeptOfThePastCounts(t *testing.T) {
	store, _ := newMemory()
	q := wrote{bytes: map[string]int{}}
	w := NewWriter(store, NoWait, q, time.Now)
	wrote := func(do func() error) int {
		t.Helper()
		before := q.bytes["t"]
		if err := do(); err != nil {
			t.Fatal(err)
		}
		return q.bytes["t"] - before
	}
	flag := func(c commands.Command[state.Flag]) func() error {
		return func() error { _, _, err := Do(t.Context(), w, By{}, c); return err }
	}
	project := func(c commands.Command[state.Project]) func() error {
		return func() error { _, _, err := Do(t.Context(), w, By{}, c); return err }
	}
	long, ref := strings.Repeat("d", 2000), commands.FlagRef{TenantID: "t", Key: "k"}
	tags := make([]string, 50)
	for i := range tags {
		tags[i] = fmt.Sprintf("%050d", i)
	}
	wrote(
		flag(
			commands.CreateFlag{TenantID: "t", Key: "k", Type: "string", DefaultValue: textOf(40_000), Description: long, Tags: tags},
		),
	)
	if n := wrote(flag(commands.UpdateFlag{FlagRef: ref, Status: new(events.FlagStatus("inactive"))})); n < 4500+400 || n > 6000 {
		t.Errorf("a status of a flag with 4,500 bytes of texts counts as %d bytes", n)
	}
	links := make([]events.Link, 10)
	for i := range links {
		links[i] = events.Link{Title: strings.Repeat("t", 100), URL: "https://example.com/" + strings.Repeat("u", 400)}
	}
	linked := commands.FlagRef{TenantID: "t", Key: "linked"}
	wrote(flag(commands.CreateFlag{TenantID: "t", Key: "linked", Type: "boolean", Links: links}))
	if n := wrote(flag(commands.UpdateFlag{FlagRef: linked, Status: new(events.FlagStatus("inactive"))})); n < 5000 || n > 7000 {
		t.Errorf("a status of a flag with 5,000 bytes of links counts as %d bytes", n)
	}
	if n := wrote(
		flag(commands.SwitchFlag{FlagRef: ref, Environment: events.EnvironmentRef{ID: "e", Name: "production"}, On: true}),
	); n < 400 ||
		n > 1500 {
		t.Errorf("a switch of a flag of 40,000 bytes counts as %d bytes", n)
	}
	wrote(project(commands.CreateProject{TenantID: "t", ID: "p", Name: "P", Description: long}))
	if n := wrote(
		project(commands.UpdateProject{ProjectRef: commands.ProjectRef{TenantID: "t", ID: "p"}, Color: new("#000000")}),
	); n < 2000 ||
		n > 3000 {
		t.Errorf("a color of a project with a description of 2,000 bytes counts as %d bytes", n)
	}
}
