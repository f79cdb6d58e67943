package flagd

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"

	"flagledger/events"
	"flagledger/events/state"
)

// schemaURL names the schema of flagd's documents.
const schemaURL = "https://flagd.dev/schema/v0/flags.json"

// Set selects the flags of a document.
type Set struct {
	TenantID    string
	Environment events.EnvironmentRef
	ProjectID   string // empty for flags of any project, and of none
	Tag         string // empty for any tags
}

// Has reports whether a flag belongs to the set. Archived flags do not.
func (s Set) Has(f *state.Flag) bool {
	return f.Exists && f.Status != events.ArchivedFlag && (s.ProjectID == "" || f.ProjectID == s.ProjectID) &&
		(s.Tag == "" || slices.Contains(f.Tags, s.Tag))
}

// Document returns the definitions of a set's flags, which must come sorted by key, and the keys of those that it
// defines. Its metadata counts the others, which flagd cannot express, as remoteOnly.
func (s Set) Document(flags iter.Seq2[string, *state.Flag], d Dialect) (text []byte, keys []string, err error) {
	var b bytes.Buffer
	b.WriteString(`{"$schema":"` + schemaURL + `","flags":{`)
	remoteOnly, separator := 0, ""
	for key, f := range flags {
		if !s.Has(f) {
			continue
		}
		definition, err := translate(f, s.Environment.ID, d)
		if err != nil {
			remoteOnly++
			continue
		}
		name, err := events.Marshal(key)
		if err != nil {
			return nil, nil, err
		}
		text, err := definition.encode()
		if err != nil {
			return nil, nil, err
		}
		b.WriteString(separator)
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
		separator, keys = ",", append(keys, key)
	}
	metadata, err := json.Marshal(map[string]any{
		"flagSetId": s.TenantID + "/" + s.Environment.Name, "remoteOnly": remoteOnly,
	})
	if err != nil {
		return nil, nil, err
	}
	b.WriteString(`},"metadata":`)
	b.Write(metadata)
	b.WriteByte('}')
	return b.Bytes(), keys, nil
}
