package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"flagledger/projections/usage"
	"flagledger/queries"
)

// The value of a settled flag is printed as in code. Names that tenants chose contain no control characters.
func TestWhatASettledFlagServesIsPrinted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	longAgo, today := now.AddDate(0, -6, 0), now.Add(-time.Hour)
	name := func(text string) *string { return &text }
	flag := func(key string, evaluated *time.Time, f queries.CleanupFlag) queries.CleanupFlag {
		f.Key, f.Status, f.CreatedAt, f.UpdatedAt, f.LastEvaluated = key, "active", longAgo, longAgo, evaluated
		return f
	}
	var out strings.Builder
	err := printCleanup(&out, []queries.CleanupFlag{
		flag("named", &today, queries.CleanupFlag{
			SameOutcome: true, VariationName: name("blue\x1b[2J"), Value: json.RawMessage(`"#00f"`),
			Clients:    []usage.ClientUse{{ClientID: name("c1"), Name: name("shop")}, {}, {ClientID: name("c2")}},
			RequiredBy: []string{"checkout", "banner"},
		}),
		flag("valued", &today, queries.CleanupFlag{SameOutcome: true, Value: json.RawMessage(`1.50`)}),
		flag("differs", &today, queries.CleanupFlag{}),
		flag("forgotten", nil, queries.CleanupFlag{}),
	}, queries.Staleness{Now: now, After: 30 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"FLAG LIFECYCLE SINCE LAST EVALUATED SERVES TO REQUIRED BY",
		`named settled 2026-06-01T11:00:00Z 2026-06-01T11:00:00Z "#00f" (blue\x1b[2J) shop, people, c2 checkout, banner`,
		"valued settled 2026-06-01T11:00:00Z 2026-06-01T11:00:00Z 1.50 - -",
		"differs settled 2026-06-01T11:00:00Z 2026-06-01T11:00:00Z another value in each environment - -",
		"forgotten unused 2025-12-01T12:00:00Z never - - -",
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it prints\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
