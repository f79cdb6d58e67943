package models

import (
	"fmt"
	"testing"

	"flagledger/events"
	"flagledger/projections"
)

func TestTheTrailForgetsNamesOfDeletedClients(t *testing.T) {
	trail, batch, stream := newTrail(), &projections.Batch{}, events.TenantStream("t")
	trail.names[stream], trail.ends["t"] = &streamNames{parts: map[string]string{}}, &trailEnd{}
	revision := events.Revision(0)
	apply := func(fact events.TenantFact) {
		t.Helper()
		revision++
		event := events.Event{Fact: fact}
		stored, err := events.Encode(event)
		if err == nil {
			err = trail.Apply(batch,
				events.Recorded{Event: event, Stored: stored, Stream: stream, Revision: revision, Name: fact.StoredName()})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		id := fmt.Sprint("client ", i)
		apply(events.OAuthClientCreated{ClientID: id, Name: "a name"})
		apply(events.OAuthClientDeleted{ClientID: id})
	}
	apply(events.OAuthClientCreated{ClientID: "kept", Name: "its name"})
	if names := trail.names[stream].parts; len(names) != 1 || names["kept"] != "its name" {
		t.Errorf("it keeps %d names", len(names))
	}
}
