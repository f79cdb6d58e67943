package rules

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimes(t *testing.T) {
	want := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, ok := range map[string]bool{
		"2026-03-04T05:06:07Z": true, "2026-03-04T05:06:07+00:00": true, "2026-03-04T07:06:07+02:00": true, "2026-03-03T23:36:07-05:30": true,
		"2026-03-04t05:06:07z": true, "2026-03-04t05:06:07+00:00": true, "2026-03-04T05:06:07z": true, "2026-03-04x05:06:07Z": false, "2026-03-04T05:06:07y": false,
		"2026-03-04T05:06:07.000000000Z": true, "2026-03-04T05:06:07.0+00:00": true,
		"2026-03-04T5:06:07Z": false, "2026-03-04T05:06:07,0Z": false, "2026-03-05T05:06:07+24:00": false, "2026-03-04T06:06:07+00:60": false, "2026-03-04T05:06:07": false,
		"2026-03-04 05:06:07Z": false, "2026-03-04": false, "": false, "Z": false, "2026-02-30T00:00:00Z": false, "2026-03-04T24:00:00Z": false,
		"2024-02-29T00:00:00Z x": false, "2026-03-04T05:06:07.": false, "2026-03-04T05:06:07.Z": false, "2026-03-04T05:06:07.1": false, "2026-00-04T05:06:07Z": false,
		"2026-13-04T05:06:07Z": false, "2026-03-00T05:06:07Z": false, "2026-03-04T05:06:07+": false, "2026-03-04T05:06:07±02:00": false, "2026-03-04T05:06:07+02:00Z": false,
		"2026-03-04T05:06:07+0000": false, "2026-03-04T05:06:60Z": false, "1772600767": false,
	} {
		got, took := ParseTime(text)
		if took != ok || ok && !got.Equal(want) {
			t.Errorf("%q is read as %v, %v", text, got, took)
		}
	}
}

// A leap second is the last one of a month in UTC.
func TestLeapSecondsCountAsTheNext(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2016-12-31T23:59:60Z": time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC), "2015-06-30t23:59:60.25z": time.Date(2015, 7, 1, 0, 0, 0, 250_000_000, time.UTC),
		"2017-01-01T08:59:60+09:00": time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC), "2016-12-31T15:59:60-08:00": time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC),
		"2016-12-31T22:59:60Z": {}, "2016-12-30T23:59:60Z": {}, "2016-12-31T23:58:60Z": {}, "2016-12-31T23:59:61Z": {}, "2017-01-01T00:00:60Z": {},
		"2016-12-31T23:59:60+09:00": {},
	} {
		if got, ok := ParseTime(text); ok == want.IsZero() || !got.Equal(want) {
			t.Errorf("%q is read as %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestTimesAsPackageTimeReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60, 23*60).Draw(t, "minutes east"))
		at := time.Unix(rapid.Int64Range(-62_000_000_000, 253_000_000_000).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).
			In(zone)
		for _, layout := range []string{time.RFC3339, time.RFC3339Nano, "2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05.000000000Z07:00"} {
			text := at.Format(layout)
			want, err := time.Parse(time.RFC3339, text)
			if got, ok := ParseTime(text); !ok || err != nil || !got.Equal(want) {
				t.Fatalf("%s is read as %s, %v, package time says %s, %v", text, got, ok, want, err)
			}
		}
	})
}

// The grammar is RFC 3339's; package time knows how many days a month has.
func TestTimesAreThoseOfTheGrammar(t *testing.T) {
	grammar := regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:[0-5]\d(\.\d+)?([Zz]|[-+]([01]\d|2[0-3]):[0-5]\d)$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`2026-0[12]-0[12][Tt][012]?[0-9]:[0-6]0:[0-6]0([.,][0-9]{0,2})?(Z|z|[-+][012][0-9]:[0-6][0-9])`).
			Draw(t, "text")
		want, err := time.Parse(time.RFC3339, strings.ToUpper(text))
		if got, ok := ParseTime(text); ok != (err == nil && grammar.MatchString(text)) || ok && !got.Equal(want) {
			t.Errorf("%q is read as %v, %v; package time says %v, %v", text, got, ok, want, err)
		}
	})
}

func TestReadingTimesAllocatesNothing(t *testing.T) {
	texts := []string{"2026-03-14T15:09:26.535+02:00", "2026-03-14T15:09:26", strings.Repeat("9", 100)}
	if n := testing.AllocsPerRun(100, func() {
		for _, text := range texts {
			_, _ = ParseTime(text)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
