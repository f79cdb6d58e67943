package edge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"flagledger/commands/keep/keys"
	"flagledger/projections/snapshot"
)

// savedFeed is everything that a feed has told, as of a time.
type savedFeed struct {
	AsOf   time.Time
	Events []snapshot.FeedEvent
}

// copyFile is a file that only the edge with its key can read.
type copyFile struct {
	path string
	box  keys.Box
}

func newCopyFile(folder, key string, box keys.Box) copyFile {
	return copyFile{filepath.Join(folder, nameOf(key)+".feed"), box}
}

// nameOf returns how the names of a key's files begin.
func nameOf(key string) string {
	hash := sha256.Sum256([]byte(key))
	return "edge-" + hex.EncodeToString(hash[:8])
}

// removeOldFiles removes the files of keys that are no longer configured once the service would not take their usage.
func removeOldFiles(c Config) {
	files, _ := filepath.Glob(filepath.Join(c.Folder, "edge-*.*"))
	for _, path := range files {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		info, err := os.Stat(path)
		if err != nil || c.Now().Sub(info.ModTime()) < maxAge ||
			slices.ContainsFunc(c.Keys, func(key string) bool { return nameOf(key) == name }) {
			continue
		}
		if err := os.Remove(path); err != nil {
			c.Log.Warn("a file of a key that is no longer configured stays", "path", path, "err", err)
		}
	}
}

var errSealed = errors.New("it is damaged, or of another key")

// read returns what the file holds, or nil if there is none.
func (f copyFile) read() (*savedFeed, error) {
	sealed, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, _, ok := f.box.Decrypt(sealed, nil)
	if !ok {
		return nil, errSealed
	}
	saved := &savedFeed{}
	return saved, json.Unmarshal(text, saved)
}

// write replaces the file, whole or not at all.
func (f copyFile) write(saved savedFeed) error {
	text, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	return renameio.WriteFile(f.path, f.box.Encrypt(text, nil), 0o600, renameio.IgnoreUmask())
}
