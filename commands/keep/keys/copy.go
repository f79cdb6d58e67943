package keys

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/renameio/v2"

	"flagledger/commands"
)

// errVerifyOnly reports that only public keys are known.
var errVerifyOnly = &commands.Error{
	Kind:   commands.Unavailable,
	Detail: "no tokens are issued until the database has been reached",
}

// hold sets the keys read from the database, and copies the public ones to disk.
func (k *Keys) hold(s *set) {
	before := k.held.Swap(s)
	if k.copyFile == "" || before != nil && before.sameKeys(s) {
		return
	}
	if err := writeCopy(k.copyFile, s); err != nil {
		k.log.Warn("the public signing keys could not be copied to disk; the next start needs the database", "err", err)
	}
}

func (s *set) sameKeys(other *set) bool {
	for id := range s.byID {
		if other.byID[id] == nil {
			return false
		}
	}
	return len(s.byID) == len(other.byID)
}

// copiedKey is a key in the copy, which is a line with a checksum, and the keys as JSON.
type copiedKey struct {
	SignsFrom time.Time       `json:"signsFrom"`
	Key       jose.JSONWebKey `json:"key"`
}

func writeCopy(path string, s *set) error {
	var list []copiedKey
	for i, public := range s.publics.Keys {
		list = append(list, copiedKey{s.keys[i].signsFrom, public})
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, []byte(checksum(data)+"\n"+string(data)), 0o600, renameio.IgnoreUmask())
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var errBadCopy = errors.New("the copy of the public signing keys is damaged")

func readCopy(path string) (*set, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum, data, _ := strings.Cut(string(text), "\n")
	var list []copiedKey
	if sum != checksum([]byte(data)) || json.Unmarshal([]byte(data), &list) != nil || len(list) == 0 {
		return nil, errBadCopy
	}
	s := &set{byID: map[string]*key{}}
	for _, c := range list {
		public, ok := c.Key.Key.(*rsa.PublicKey)
		if !ok {
			return nil, errBadCopy
		}
		s.add(&key{id: c.Key.KeyID, signsFrom: c.SignsFrom, public: public})
	}
	return s, nil
}
