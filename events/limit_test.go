package events_test

import (
	"testing"
	"time"

	"flagledger/events"
)

func TestLimitsAreWrittenInWholeUnits(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		events.CountText(5):                                        "5",
		events.CountText(500):                                      "500",
		events.CountText(1_200_000):                                "1,200,000",
		events.SizeText(1000):                                      "1,000 bytes",
		events.SizeText(64 << 10):                                  "64 KiB",
		events.SizeText(1 << 20):                                   "1 MiB",
		events.SizeText(1<<20 + 1):                                 "1,048,577 bytes",
		events.SizeText(2 << 30):                                   "2 GiB",
		events.PeriodText(50 * time.Millisecond):                   "50 ms",
		events.PeriodText(time.Minute):                             "1 min",
		events.PeriodText(15 * time.Minute):                        "15 min",
		events.PeriodText(24 * time.Hour):                          "24 h",
		events.PeriodText(30 * 24 * time.Hour):                     "30 days",
		events.PeriodText(1500 * time.Microsecond):                 "1.5ms",
		events.Limit{Max: 2000, Unit: "a day"}.Text():              "2,000 a day",
		events.Limit{Max: 16 << 10, Unit: events.UnitBytes}.Text(): "16 KiB",
	} {
		if got != want {
			t.Errorf("%q is to be %q", got, want)
		}
	}
}
