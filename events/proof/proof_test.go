package proof_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/events/proof"
)

// The roots equal tlog's, which follows RFC 6962.
func TestTheRootsAreThoseOfTlog(t *testing.T) {
	t.Parallel()
	var tree proof.CompactRange
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (list []tlog.Hash, err error) {
		for _, i := range indexes {
			list = append(list, stored[i])
		}
		return list, nil
	})
	for n := range int64(600) {
		want, err := tlog.TreeHash(n, reader)
		if err != nil || tree.Root() != want || tree.Size() != n {
			t.Fatalf("the root of %d leaves is %v, want %v, %v", tree.Size(), tree.Root(), want, err)
		}
		leaf := tlog.RecordHash(fmt.Append(nil, n))
		tree.Add(leaf)
		hashes, err := tlog.StoredHashesForRecordHash(n, leaf, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hashes...)
	}
}

func TestACheckpointIsSigned(t *testing.T) {
	t.Parallel()
	key := func() (note.Signer, string) {
		private, public, err := note.GenerateKey(rand.Reader, "flagledger")
		if err != nil {
			t.Fatal(err)
		}
		signer, err := note.NewSigner(private)
		if err != nil {
			t.Fatal(err)
		}
		return signer, public
	}
	signer, public := key()
	_, other := key()
	c := proof.Checkpoint{TenantID: "t1", Size: 7, Root: tlog.RecordHash([]byte("x"))}
	signed, err := proof.Sign(c, signer)
	if err != nil || !strings.HasPrefix(string(signed), "flagledger/t1\n7\n"+c.Root.String()+"\n\n— flagledger ") {
		t.Fatalf("%v\n%s", err, signed)
	}
	if got, err := proof.Open(append(signed, '\n'), public+"\n"); got != c || err != nil {
		t.Errorf("it is read as %+v, %v", got, err)
	}
	for what, test := range map[string]struct{ signed, key, says string }{
		"another key":      {string(signed), other, "not signed by"},
		"no key":           {string(signed), "?", "verifier key"},
		"another size":     {strings.Replace(string(signed), "\n7\n", "\n8\n", 1), public, "checkpoint"},
		"no note":          {"hello", public, "cannot be read"},
		"without a name":   {strings.Replace(string(signed), "flagledger/t1", "t1", 1), public, "checkpoint"},
		"without a tenant": {"", public, "cannot be read"},
	} {
		if c, err := proof.Open([]byte(test.signed), test.key); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v, want an error that says %q", what, c, err, test.says)
		}
	}
}
