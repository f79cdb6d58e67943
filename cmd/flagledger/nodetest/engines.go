package nodetest

import (
	"strings"
	"sync"
	"testing"

	"flagledger/events/eventstore/esdbtest"
)

// eventStoreDB is the name of the subtest in which BothEngines runs a test on EventStoreDB.
const eventStoreDB = "EventStoreDB"

// BothEngines runs a test twice, beside others: with the facts in Postgres, and with the facts in EventStoreDB. It is
// for what is stored and read back, replayed, streamed or rebuilt.
func BothEngines(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	t.Run("Postgres", test)
	t.Run(eventStoreDB, test)
}

func onEventStoreDB(t testing.TB) bool { return strings.Contains(t.Name()+"/", "/"+eventStoreDB+"/") }

// eventStores are the connection strings of event stores by the database whose read models follow them.
var eventStores sync.Map

// EventStoreURL is the connection string of the event store that belongs to a database. It is empty for Postgres: only
// in a test that BothEngines runs on EventStoreDB is there one.
func EventStoreURL(t testing.TB, databaseURL string) string {
	if !onEventStoreDB(t) {
		return ""
	}
	if url, known := eventStores.Load(databaseURL); known {
		return url.(string)
	}
	url := esdbtest.New(t).URL()
	eventStores.Store(databaseURL, url)
	return url
}
