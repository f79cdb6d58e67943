package health

import (
	"strings"
	"testing"
	"time"

	"flagledger/migrations/pgtest"
)

func TestHealthTellsOfAClockThatDiffersFromTheDatabases(t *testing.T) {
	pool := pgtest.Pool(t)
	for ahead, want := range map[time.Duration]string{
		0: "", 4 * time.Second: "", time.Minute: "ahead of", -time.Minute: "behind", -4 * time.Second: "",
	} {
		skew, err := ClockSkew(t.Context(), pool, func() time.Time { return time.Now().Add(ahead) })
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(skewProblems(skew), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%v ahead: %q", ahead, got)
		}
	}
}

// The time that the database takes to respond is no clock skew.
func TestASlowAnswerIsNoSkew(t *testing.T) {
	pool := pgtest.Pool(t)
	asked := false
	skew, err := ClockSkew(t.Context(), pool, func() time.Time {
		if asked {
			return time.Now().Add(time.Hour)
		}
		asked = true
		return time.Now().Add(-time.Hour)
	})
	if err != nil || skew != 0 {
		t.Errorf("%v, %v", skew, err)
	}
}
