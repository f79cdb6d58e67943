package evaluation

import (
	"slices"
	"strings"
	"testing"

	"flagledger/commands/keep/keys"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

// namedLog is a log without changes.
type namedLog struct {
	Changes
	name string
}

func (l namedLog) LogName() string { return l.name }

func idsOf(t *testing.T, secret, log, tenantID string) StreamIDs {
	t.Helper()
	parsed, err := keys.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := (&API{Core: &rest.Core{Options: rest.Options{Secret: parsed}},
		Options: Options{Changes: namedLog{snapshot.New(snapshot.Options{}), log}}}).StreamIDs(tenantID)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestIDsOfStreamsTellNothing(t *testing.T) {
	secret := strings.Repeat("s", 32)
	mine, theirs := idsOf(t, secret, "log", "t1"), idsOf(t, secret, "log", "t2")
	var all []string
	for commit := range uint64(100) {
		p := events.Position{Commit: commit, Prepare: 1<<64 - 1 - commit}
		for _, ids := range []StreamIDs{mine, mine, theirs} {
			id := ids.ID(p)
			if got, ok := ids.Position(id); !ok || got != p {
				t.Fatalf("%v is read as %v, %v", p, got, ok)
			}
			all = append(all, id)
		}
	}
	length, ordered := len(all[0]), slices.IsSorted(all)
	if slices.ContainsFunc(all, func(id string) bool { return len(id) != length }) || ordered {
		t.Error("ids tell by their length or order what came first")
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 300 {
		t.Error("the same position has the same id")
	}
}

func TestWhichIDsOfStreamsAreKnown(t *testing.T) {
	first, second := strings.Repeat("1", 32), strings.Repeat("2", 32)
	p := events.Position{Commit: 12, Prepare: 1<<64 - 1}
	id := idsOf(t, first, "log", "t").ID(p)
	for what, ids := range map[string]StreamIDs{
		"another node":                 idsOf(t, first, "log", "t"),
		"while the secret is replaced": idsOf(t, second+","+first, "log", "t"),
	} {
		if got, ok := ids.Position(id); !ok || got != p {
			t.Errorf("%s: it is read as %v, %v", what, got, ok)
		}
	}
	for what, ids := range map[string]StreamIDs{
		"another tenant": idsOf(t, first, "log", "t2"),
		"another log":    idsOf(t, first, "log2", "t"),
		"another secret": idsOf(t, second, "log", "t"),
	} {
		if got, ok := ids.Position(id); ok {
			t.Errorf("%s: it is read as %v", what, got)
		}
	}
	ids := idsOf(t, first, "log", "t")
	for _, text := range []string{"", "x", "1/1", id[1:], id + "A", id[:len(id)-4], strings.ToLower(id), "A" + id, strings.Repeat("A", 30_000)} {
		if _, ok := ids.Position(text); ok {
			t.Errorf("%q is taken", text)
		}
	}
}
