package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// An attacker who requests links with a person's address causes only a few mails, and cannot exclude them from good
// links.
func TestLinksToAnAddressAreBounded(t *testing.T) {
	t.Parallel()
	client := open(t, newOffice(t).pool)
	links, start := NewLinks(client), time.Now().Truncate(time.Minute)
	email := uuid.NewString() + "@example.com"
	for name, c := range map[string]struct {
		kind string
		ask  func(email string, at time.Time) error
		want []int // number of links after each of these times
		at   []time.Duration
	}{
		"to a new password": {
			resetLink{}.Kind(),
			func(email string, at time.Time) error { return links.QueueReset(t.Context(), email, at) },
			[]int{5, 5, 6, 6, 7, 9},
			[]time.Duration{10 * time.Minute, 30 * time.Minute, 64 * time.Minute, 123 * time.Minute, 124 * time.Minute, 30 * time.Hour},
		},
		"to a sandbox": {
			sandboxLink{}.Kind(),
			func(email string, at time.Time) error { return links.QueueSandboxLink(t.Context(), email, "", at) },
			[]int{10, 10, 12},
			[]time.Duration{10 * time.Minute, 23 * time.Hour, 24*time.Hour + 2*time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(email string, at time.Time) {
				t.Helper()
				if err := c.ask(email, at); err != nil {
					t.Fatal(err)
				}
			}
			for minute := range 10 {
				ask(strings.ToUpper(email[:5])+email[5:], start.Add(time.Duration(minute)*time.Minute))
			}
			for i, after := range c.at {
				for range 2 { // within a minute they are one link
					ask(email, start.Add(after))
				}
				if i == len(c.at)-1 {
					ask(email, start.Add(after+time.Minute))
				}
				total := 0
				for _, n := range states(t, client.pool, c.kind) {
					total += n
				}
				if total != c.want[i] {
					t.Errorf("after %v there were %d links, want %d", after, total, c.want[i])
				}
			}
		})
	}
}
