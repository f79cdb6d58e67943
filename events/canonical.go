package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// RecordedFormat is how a recorded time is written in canonical bytes and exports, for time.Time.Format: in UTC, with
// six decimals.
const RecordedFormat = "2006-01-02T15:04:05.000000Z"

// Canonical returns the bytes of an event that proofs and digests are about, as docs/audit.md describes them. They are
// the same in every engine and after a copy: the position is left out. The error is for an event whose bytes are no
// JSON, or whose stream or name contains a line feed.
func Canonical(e Recorded) ([]byte, error) {
	if strings.Contains(e.Stream, "\n") || strings.Contains(e.Name, "\n") {
		return nil, fmt.Errorf("%q@%d: the stream or the name %q contains a line feed", e.Stream, e.Revision, e.Name)
	}
	metadata, err := CanonicalMetadata(e)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if err := json.Compact(&data, e.Stored.Data); err != nil {
		return nil, fmt.Errorf("%s@%d: data: %w", e.Stream, e.Revision, err)
	}
	b := make([]byte, 0, 256+len(e.Stream)+len(metadata)+data.Len())
	b = fmt.Appendf(b, "flagledger fact v1\n%s\n%d\n%s\n%s\n%d\n%s\n%d\n", e.Stream, e.Revision, e.ID, e.Name,
		e.Stored.Version, e.At.UTC().Format(RecordedFormat), len(metadata))
	b = append(b, metadata...)
	b = fmt.Appendf(b, "\n%d\n", data.Len())
	b = append(b, data.Bytes()...)
	return append(b, '\n'), nil
}

// CanonicalMetadata returns the metadata of an event in JSON, without what an engine adds of its own.
func CanonicalMetadata(e Recorded) ([]byte, error) {
	if e.Err != nil { // perhaps of the metadata, which are incomplete then
		if err := json.Unmarshal(e.Stored.Metadata, new(Metadata)); err != nil {
			return nil, fmt.Errorf("%s@%d: metadata: %w", e.Stream, e.Revision, err)
		}
	}
	b, err := Marshal(e.Metadata)
	if err != nil {
		return nil, fmt.Errorf("%s@%d: metadata: %w", e.Stream, e.Revision, err)
	}
	return b, nil
}

// CheckMetadata returns an error where the metadata that an event is stored with are not the canonical ones, but for
// white space: what a reader finds in them is not what is hashed.
func CheckMetadata(e Recorded) error {
	canonical, err := CanonicalMetadata(e)
	if err != nil || bytes.Equal(e.Stored.Metadata, canonical) {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Stored.Metadata); err != nil || !bytes.Equal(compact.Bytes(), canonical) {
		return fmt.Errorf(
			"%s@%d: metadata: a member is unknown, stands twice, or has another name, place or spelling than this program "+
				"writes: it was altered",
			e.Stream,
			e.Revision,
		)
	}
	return nil
}

// LeafHash returns the hash of an event as a leaf of a Merkle tree, as in RFC 6962, section 2.1.
func LeafHash(e Recorded) ([sha256.Size]byte, error) {
	b, err := Canonical(e)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(append([]byte{0}, b...)), nil
}
