package http

import (
	"encoding/base64"
	"encoding/binary"

	"flagledger/commands/keep/keys"
	"flagledger/events"
)

// streamIDs writes positions of the log as ids for one tenant, encrypted: they tell nobody how much others change, and
// no other tenant can use them.
type streamIDs struct {
	box     keys.Box
	changes Changes
}

// streamIDsOf derives the key of a tenant's ids, so that no key encrypts too much for random nonces.
func (a *API) streamIDsOf(tenantID string) (streamIDs, error) {
	box, err := a.Secret.Box("stream positions of tenant " + tenantID)
	return streamIDs{box, a.Changes}, err
}

// id is another one each time, also of the same position: so it does not tell whether anything has happened.
func (s streamIDs) id(p events.Position) string {
	text := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.Commit), p.Prepare)
	return base64.RawURLEncoding.EncodeToString(s.box.Encrypt(text, []byte(s.changes.LogName())))
}

// position reads what id wrote on this or another node. It returns false for any other text: an id of another tenant,
// of another log, or of a secret that is no longer known.
func (s streamIDs) position(id string) (p events.Position, ok bool) {
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
