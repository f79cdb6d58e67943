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
		recorded, now, want time.Time
	}{
		"without a subscription":           {Subscription{Plan: SandboxPlan, Status: NoSubscription}, day(15), day(20), day(15)},
		"before ends were recorded":        {Subscription{Plan: SandboxPlan, Status: NoSubscription}, never, day(20), never},
		"with another plan":                {Subscription{Plan: StandardPlan, Status: NoSubscription}, day(15), day(20), never},
		"on the free plan":                 {Subscription{Plan: FreePlan, Status: NoSubscription}, day(15), day(20), never},
		"that is paid for":                 {Subscription{Plan: SandboxPlan, Status: Active, PeriodEnd: day(25)}, day(15), day(20), never},
		"that was cancelled":               {Subscription{Plan: StandardPlan, Status: Canceled, PeriodEnd: day(25)}, day(15), day(26), day(25)},
		"that was paid for before its end": {Subscription{Plan: StandardPlan, Status: Canceled, PeriodEnd: day(10)}, day(15), day(12), day(15)},
		"that runs out":                    {Subscription{Plan: StandardPlan, Status: Active, PeriodEnd: day(25), CancelAtPeriodEnd: true}, day(15), day(25), day(25)},
		"that was never paid for":          {Subscription{Plan: StandardPlan, Status: IncompleteExpired}, day(15), day(20), day(15)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.SandboxEnd(c.recorded, c.now); !got.Equal(c.want) {
				t.Errorf("it ends at %v, want %v", got, c.want)
			}
		})
	}
}
