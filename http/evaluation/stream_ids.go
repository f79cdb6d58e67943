package evaluation

import (
	"encoding/base64"
	"encoding/binary"

	"flagledger/commands/keep/keys"
	"flagledger/events"
)

// StreamIDs encrypts positions of the log as ids for one tenant: they do not reveal how much other tenants change, and
// other tenants cannot use them.
type StreamIDs struct {
	box     keys.Box
	changes Changes
}

// StreamIDs returns the ids of a tenant, with a key derived for it: one key for all would encrypt too much for random
// nonces.
func (a *API) StreamIDs(tenantID string) (StreamIDs, error) {
	box, err := a.Secret.Box("stream positions of tenant " + tenantID)
	return StreamIDs{box, a.Changes}, err
}

// ID encrypts a position. The result is different each time, so that it does not reveal whether anything changed.
func (s StreamIDs) ID(p events.Position) string {
	text := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.Commit), p.Prepare)
	return base64.RawURLEncoding.EncodeToString(s.box.Encrypt(text, []byte(s.changes.LogName())))
}

// Position decrypts an id of this or another node. It returns false for any other text, such as an id of another tenant
// or log, or of a removed secret.
func (s StreamIDs) Position(id string) (p events.Position, ok bool) {
	encrypted, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return p, false
	}
	text, _, ok := s.box.Decrypt(encrypted, []byte(s.changes.LogName()))
	if !ok || len(text) != 16 {
		return p, false
	}
	return events.Position{Commit: binary.BigEndian.Uint64(text), Prepare: binary.BigEndian.Uint64(text[8:])}, true
}
