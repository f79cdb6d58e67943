package keys

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
)

// errVerifyOnly says that only public keys are known.
var errVerifyOnly = &commands.Error{Kind: commands.Unavailable, Detail: "no tokens are issued until the database has been reached"}

// OpenWithCopy is Open with a copy of the public keys in a file that only its owner may read; without one where the name is empty. Where the database cannot
// be reached, tokens are verified with the copy, and Sign is Unavailable until Rotate has read the keys.
func OpenWithCopy(ctx context.Context, pool *pgxpool.Pool, secret Secret, file string, now func() time.Time, log *slog.Logger) (*Keys, error) {
	k := &Keys{pool: pool, copy: file, now: now, log: log}
	k.load = k.fetch
	var err error
	if k.box, err = secret.Box("signing keys"); err != nil {
		return nil, err
	}
	if k.own, err = secret.ownKeys(); err != nil {
		return nil, err
	}
	err = k.Rotate(ctx)
	if err == nil {
		return k, nil
	}
	if k.held.Load() != nil {
		k.log.Warn(notRotated, "again in", rotateInterval, "err", err)
		return k, nil
	}
	if refusal, ok := errors.AsType[*commands.Error](err); file == "" || !ok || refusal.Kind != commands.Unavailable {
		return nil, err
	}
	copied, copyErr := readCopy(file)
	if copyErr != nil {
		return nil, errors.Join(err, copyErr)
	}
	k.log.Warn("the signing keys cannot be read: tokens are verified with the copy of the public ones", "err", err)
	k.held.Store(copied)
	return k, nil
}

// hold takes keys that were read from the database, and copies the public ones.
func (k *Keys) hold(s *set) {
	before := k.held.Swap(s)
	if k.copy == "" || before != nil && before.sameKeys(s) {
		return
	}
	if err := writeCopy(k.copy, s); err != nil {
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

// copiedKey is a key in the file. The file is a line with its checksum, and the keys as JSON.
type copiedKey struct {
	SignsFrom time.Time       `json:"signsFrom"`
	Key       jose.JSONWebKey `json:"key"`
}

func writeCopy(path string, s *set) (err error) {
	var list []copiedKey
	for i, public := range s.publics.Keys {
		list = append(list, copiedKey{s.keys[i].signsFrom, public})
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.WriteString(checksum(data) + "\n" + string(data))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
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
