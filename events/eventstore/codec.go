package eventstore

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
)

// toEventData puts the version of the fact's shape before the members of its metadata: {"version":1,"time":...}. Data goes as it is.
func toEventData(stored events.Stored) esdb.EventData {
	metadata := append([]byte(`{"version":`), strconv.Itoa(stored.Version)...)
	metadata = append(metadata, ',')
	metadata = append(metadata, stored.Metadata[1:]...)
	return esdb.EventData{
		EventID:     stored.ID,
		EventType:   stored.Name,
		ContentType: esdb.ContentTypeJson,
		Data:        stored.Data,
		Metadata:    metadata,
	}
}

func fromRecorded(e *esdb.RecordedEvent) events.Recorded {
	recorded := events.Recorded{
		Event:    events.Event{ID: e.EventID},
		Position: at(e.Position),
		Stream:   e.StreamID,
		Revision: events.Revision(e.EventNumber + 1),
		Name:     e.EventType,
	}
	var shape struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(e.UserMetadata, &shape); err != nil {
		recorded.Err = fmt.Errorf("metadata of %s: %w", e.EventType, err)
		return recorded
	}
	stored := events.Stored{ID: e.EventID, Name: e.EventType, Version: shape.Version, Data: e.Data, Metadata: e.UserMetadata}
	recorded.Event, recorded.Err = events.Decode(stored)
	recorded.Stored = stored
	return recorded
}

func at(p esdb.Position) events.Position {
	return events.Position{Commit: p.Commit, Prepare: p.Prepare}
}
