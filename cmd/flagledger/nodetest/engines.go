package nodetest

import (
	"strings"
	"sync"
	"testing"

	"flagledger/events/eventstore/esdbtest"
)

// eventStoreDB is the name of BothEngines' subtest on EventStoreDB.
const eventStoreDB = "EventStoreDB"

// BothEngines runs a test in parallel on both engines: with the facts in Postgres and in EventStoreDB. It is for tests
// of storage, replay, streams and rebuilds.
func BothEngines(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	t.Run("Postgres", test)
	t.Run(eventStoreDB, test)
}

func onEventStoreDB(t testing.TB) bool { return strings.Contains(t.Name()+"/", "/"+eventStoreDB+"/") }

// eventStores holds the connection string of each database's event store.
var eventStores sync.Map

// EventStoreURL returns the connection string of a database's event store. It is empty except in BothEngines' subtest
// on EventStoreDB.
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
