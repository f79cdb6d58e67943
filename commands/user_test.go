package commands

import (
	"testing"
	"time"

	"flagledger/events"
)

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
