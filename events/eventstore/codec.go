package eventstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
)

// toEventData puts the version of the fact's shape and, for a copy, its recorded time before the members of its
// metadata: {"version":1,"recorded":...,"time":...}. Data stay unchanged.
func toEventData(stored events.Stored) esdb.EventData {
	metadata := append([]byte(`{"version":`), strconv.Itoa(stored.Version)...)
	if !stored.At.IsZero() {
		metadata = append(metadata, `,"recorded":"`...)
		metadata = stored.At.UTC().Truncate(time.Microsecond).AppendFormat(metadata, time.RFC3339Nano)
		metadata = append(metadata, '"')
	}
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

// fromRecorded uses the server's time of an event unless it is a copy. Each leader of a cluster has its own clock, so
// times may go backwards.
func fromRecorded(e *esdb.RecordedEvent) events.Recorded {
	recorded := events.Recorded{
		Event:    events.Event{ID: e.EventID},
		Position: at(e.Position),
		Stream:   e.StreamID,
		Revision: events.Revision(e.EventNumber + 1),
		At:       recordedAt(e),
		Name:     e.EventType,
	}
	var shape struct {
		Version  int       `json:"version"`
		Recorded time.Time `json:"recorded"`
	}
	if err := json.Unmarshal(e.UserMetadata, &shape); err != nil {
		recorded.Err = fmt.Errorf("metadata of %s: %w", e.EventType, err)
		return recorded
	}
	if !shape.Recorded.IsZero() {
		recorded.At = shape.Recorded
	}
	stored := events.Stored{
		ID:       e.EventID,
		Name:     e.EventType,
		Version:  shape.Version,
		Data:     e.Data,
		Metadata: withoutOwn(e.UserMetadata, shape.Version),
		At:       recorded.At,
	}
	recorded.Event, recorded.Err = events.Decode(stored)
	recorded.Stored = stored
	return recorded
}

// recordedAt returns the server's time of an event, which has ticks of 100 ns, in whole microseconds.
func recordedAt(e *esdb.RecordedEvent) time.Time {
	return e.CreatedDate.UTC().Truncate(time.Microsecond)
}

// withoutOwn removes from metadata the members that toEventData added, and the server's, whose names begin with $.
// Other metadata stay unchanged.
func withoutOwn(metadata []byte, version int) []byte {
	if bytes.Contains(metadata, []byte(`"$`)) {
		metadata = withoutServers(metadata)
	}
	rest, ok := bytes.CutPrefix(metadata, append([]byte(`{"version":`), strconv.Itoa(version)...))
	if !ok {
		return metadata
	}
	if recorded, ok := bytes.CutPrefix(rest, []byte(`,"recorded":"`)); ok {
		if _, rest, ok = bytes.Cut(recorded, []byte(`"`)); !ok {
			return metadata
		}
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,`)); !ok {
		return metadata
	}
	return append([]byte(`{`), rest...)
}

// withoutServers removes the members whose names begin with $ from a JSON object. Unreadable bytes stay unchanged.
func withoutServers(object []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(object))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return object
	}
	kept := []byte(`{`)
	for d.More() {
		name, err := d.Token()
		text, isName := name.(string)
		var value json.RawMessage
		if err != nil || !isName || d.Decode(&value) != nil {
			return object
		}
		if strings.HasPrefix(text, "$") {
			continue
		}
		quoted, err := events.Marshal(text)
		if err != nil {
			return object
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(append(append(kept, quoted...), ':'), value...)
	}
	return append(kept, '}')
}

func at(p esdb.Position) events.Position {
	return events.Position{Commit: p.Commit, Prepare: p.Prepare}
}
