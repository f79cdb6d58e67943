package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// RecordedFormat is the format of a recorded time in canonical bytes and exports: UTC with six decimals.
const RecordedFormat = "2006-01-02T15:04:05.000000Z"

// Canonical returns the bytes of an event for proofs and digests, as docs/audit.md describes. They are the same in
// every engine and copy, because they lack the position. It returns an error if the bytes are not JSON, or if the
// stream or name contains a line feed.
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

// CanonicalMetadata returns the metadata of an event in JSON without an engine's additions.
func CanonicalMetadata(e Recorded) ([]byte, error) {
	if e.Err != nil { // the metadata may be incomplete
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

// CheckMetadata returns an error unless the stored metadata are the canonical ones except for white space: otherwise a
// reader would see something different from what is hashed.
func CheckMetadata(e Recorded) error {
	canonical, err := CanonicalMetadata(e)
	if err != nil || bytes.Equal(e.Stored.Metadata, canonical) {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Stored.Metadata); err != nil || !bytes.Equal(compact.Bytes(), canonical) {
		return fmt.Errorf(
			"%s@%d: metadata: a member is unknown, repeated, or differs in name, place or spelling from what this program "+
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
