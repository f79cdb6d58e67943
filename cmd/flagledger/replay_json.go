package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// replayedFact is a fact in JSON.
type replayedFact struct {
	Version   events.Revision `json:"version"`
	Stream    string          `json:"stream"`
	Recorded  string          `json:"recorded"`
	Fact      string          `json:"fact"`
	ID        string          `json:"id"`
	Data      any             `json:"data"`
	Metadata  any             `json:"metadata"`
	ActorName string          `json:"actorName,omitempty"`
	Changes   state.Changes   `json:"changes,omitempty"`
	Unknown   string          `json:"unknown,omitempty"` // why this program does not know the fact
}

// printLines prints a JSON object for each fact.
func (r *replay) printLines(list []describedFact, names map[string]queries.Name) error {
	for _, f := range list {
		line := replayedFact{
			Version:  f.Revision,
			Stream:   f.Stream,
			Recorded: f.At.UTC().Format(events.RecordedFormat),
			Fact:     f.Recorded.Name,
			ID:       f.ID.String(),
			Data:     stored(withoutSecrets(f.Stored.Data)),
			Metadata: stored(f.Stored.Metadata),
		}
		if f.Fact != nil {
			data, err := events.Marshal(f.Fact)
			if err != nil {
				return err
			}
			line.Data, line.Metadata = json.RawMessage(withoutSecrets(data)), f.Metadata
		}
		line.ActorName = actorName(f.Actor, names)
		if f.unknown != nil {
			line.Unknown = f.unknown.Error()
		} else if r.Diff {
			line.Changes = f.Changes
		}
		text, err := events.Marshal(line)
		if err == nil {
			err = r.write(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutSecrets removes the hashes of secrets from an object.
func withoutSecrets(data []byte) []byte {
	var members map[string]json.RawMessage
	if !bytes.Contains(bytes.ToLower(data), []byte("secret")) || json.Unmarshal(data, &members) != nil {
		return data
	}
	for name := range members {
		if strings.Contains(strings.ToLower(name), "secret") {
			delete(members, name)
		}
	}
	clean, err := events.Marshal(members)
	if err != nil {
		return nil
	}
	return clean
}
