package events

import (
	"testing"
	"time"
)

func TestSandboxEnd(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	never := time.Time{}
	for name, c := range map[string]struct {
		Subscription
		recorded, want time.Time
	}{
		"without a subscription":            {Subscription{Plan: SandboxPlan, Status: NoSubscription}, day(15), day(15)},
		"before ends were recorded":         {Subscription{Plan: SandboxPlan, Status: NoSubscription}, never, never},
		"with another plan":                 {Subscription{Plan: StandardPlan, Status: NoSubscription}, day(15), never},
		"on the free plan":                  {Subscription{Plan: FreePlan, Status: NoSubscription}, day(15), never},
		"that is paid for":                  {Subscription{Plan: SandboxPlan, Status: Active, PeriodEnd: day(25)}, day(15), never},
		"that was cancelled":                {Subscription{Plan: StandardPlan, Status: Canceled, PeriodEnd: day(25)}, day(15), day(25)},
		"that was paid for before its end":  {Subscription{Plan: StandardPlan, Status: Canceled, PeriodEnd: day(10)}, day(15), day(15)},
		"whose renewal was not heard of":    {Subscription{Plan: StandardPlan, Status: Active, PeriodEnd: day(10)}, day(15), never},
		"whose payment is long due":         {Subscription{Plan: StandardPlan, Status: PastDue, PastDueSince: day(1), PeriodEnd: day(10)}, day(15), never},
		"that is at a price without a plan": {Subscription{Plan: SandboxPlan, Status: Active}, day(15), never},
		"that was never paid for":           {Subscription{Plan: StandardPlan, Status: IncompleteExpired}, day(15), day(15)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.SandboxEnd(c.recorded); !got.Equal(c.want) {
				t.Errorf("it ends at %v, want %v", got, c.want)
			}
		})
	}
}
