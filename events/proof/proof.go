// Package proof signs and opens checkpoints, and computes the root of a tenant's Merkle tree (RFC 6962) over its
// facts. queries.AuditTree computes the proofs.
package proof

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint holds the root of a tenant's tree at a size.
type Checkpoint struct {
	TenantID string
	Size     int64 // the number of facts
	Root     tlog.Hash
}

const origin = "flagledger/"

// text returns the signed text, in the form of https://c2sp.org/tlog-checkpoint.
func (c Checkpoint) text() string {
	return fmt.Sprintf("%s%s\n%d\n%s\n", origin, c.TenantID, c.Size, c.Root)
}

// Sign returns a checkpoint as a signed note (https://c2sp.org/signed-note).
func Sign(c Checkpoint, signer note.Signer) ([]byte, error) {
	return note.Sign(&note.Note{Text: c.text()}, signer)
}

// Open parses a signed checkpoint and verifies it with a verifier key. It ignores line feeds at the end of either.
func Open(signed []byte, verifierKey string) (Checkpoint, error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(verifierKey))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("the verifier key cannot be read: %w", err)
	}
	signed = append(bytes.TrimRight(signed, "\n"), '\n')
	n, err := note.Open(signed, note.VerifierList(verifier))
	if _, unverified := errors.AsType[*note.UnverifiedNoteError](err); unverified {
		return Checkpoint{}, fmt.Errorf("the checkpoint is not signed by the key %s", verifier.Name())
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("the checkpoint cannot be read: %w", err)
	}
	lines := strings.Split(n.Text, "\n")
	tenantID, ok := strings.CutPrefix(lines[0], origin)
	if !ok || len(lines) < 4 {
		return Checkpoint{}, errors.New("it is not a checkpoint of a tenant")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 {
		return Checkpoint{}, errors.New("the size in the checkpoint is not a number")
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return Checkpoint{}, errors.New("the root in the checkpoint is not a hash")
	}
	return Checkpoint{tenantID, size, root}, nil
}

// CompactRange is a growing Merkle tree that stores only the hashes that its root needs: the logarithm of the number
// of leaves. The zero CompactRange is empty.
type CompactRange struct {
	size  int64
	parts []tlog.Hash // the roots of its full subtrees, largest first
}

// Add adds a leaf, given its hash.
func (t *CompactRange) Add(leaf tlog.Hash) { t.AddFull(0, leaf, func(int, int64, tlog.Hash) {}) }

// AddFull adds a full subtree of 2^level leaves; the size must be a multiple of that. It calls completed for each full
// subtree of a higher level: its level, its index from the left in that level, and its root.
func (t *CompactRange) AddFull(level int, root tlog.Hash, completed func(level int, index int64, root tlog.Hash)) {
	index := t.size >> level
	t.size += 1 << level
	for ; index&1 == 1; index >>= 1 { // two subtrees of one size become one
		root = tlog.NodeHash(t.parts[len(t.parts)-1], root)
		t.parts = t.parts[:len(t.parts)-1]
		level++
		completed(level, index>>1, root)
	}
	t.parts = append(t.parts, root)
}

// Size returns the number of leaves.
func (t *CompactRange) Size() int64 { return t.size }

// Root returns the hash of the tree.
func (t *CompactRange) Root() tlog.Hash {
	if t.size == 0 {
		root, _ := tlog.TreeHash(0, nil) // needs no reader
		return root
	}
	root := t.parts[len(t.parts)-1]
	for i := len(t.parts) - 2; i >= 0; i-- {
		root = tlog.NodeHash(t.parts[i], root)
	}
	return root
}
