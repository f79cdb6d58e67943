package commands

import (
	"strconv"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

func TestEndedSessionsAreForgottenOnceTheirTokensHaveExpired(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var u state.User
	for i := range 10_000 {
		now := began.Add(time.Duration(i) * time.Minute)
		session := strconv.Itoa(i)
		u.Apply(
			events.Recorded{
				Event: events.Event{
					Metadata: events.Metadata{Time: now},
					Fact:     events.SessionEnded{UserID: "u", SessionID: session, Until: now.Add(time.Hour)},
				},
			},
		)
		for j := max(0, i-59); j <= i; j++ {
			if facts, err := (EndSession{UserID: "u", SessionID: strconv.Itoa(j)}).Decide(u); err != nil || len(facts) > 0 {
				t.Fatalf("after %d sessions, %d ends once more: %v, %v", i+1, j, facts, err)
			}
		}
	}
	if len(u.Ended) > 200 {
		t.Errorf("%d ended sessions are kept", len(u.Ended))
	}
}

func TestSessionsEndOnce(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	registered := events.UserRegistered{ID: "u", Provider: "password"}
	ended := events.SessionsEnded{Before: at(5), Except: "s"}
	when(t, []events.Fact{registered}, EndSessions{UserID: "u", Before: at(5), Except: "s"}).then(ended)
	when(t, nil, EndSessions{UserID: "u", Before: at(5).In(time.FixedZone("", 3600)), Except: "s"}).then(ended)
	given := []events.Fact{registered, ended}
	when(t, given, EndSessions{UserID: "u", Before: at(5), Except: "s"}).then()
	when(t, given, EndSessions{UserID: "u", Before: at(4), Except: "x"}).then()
	when(t, given, EndSessions{UserID: "u", Before: at(5), Except: "x"}).then(events.SessionsEnded{Before: at(5), Except: "x"})
	when(t, given, EndSessions{UserID: "u", Before: at(6)}).then(events.SessionsEnded{Before: at(6)})
}
