package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

var update = flag.Bool("update", false, "write the golden file of a version that has none")

// readBytes reads a file as a start does.
func readBytes(data []byte) (*Snapshot, error) {
	f, err := startFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	read, err := f.read(context.Background())
	if err != nil {
		return nil, err
	}
	s := New(Options{})
	s.adopt(read)
	return s, nil
}

// operand returns a condition value for each operator.
var operand = map[rules.Kind]string{
	rules.NoValue:    `[]`,
	rules.Scalar:     `["a",true,1.50,1e400,-0.25,92233720368547758071]`,
	rules.Text:       `["x","größer"]`,
	rules.Pattern:    `["^a+$"]`,
	rules.Number:     `[5,7.5]`,
	rules.Time:       `["2026-03-14T15:09:26.5+02:00"]`,
	rules.Version:    `["1.2.3-rc.1+b"]`,
	rules.SegmentKey: `["beta","gone"]`,
}

// everyFact is a log with a fact of every kind. The golden file is made of it: see TestGoldenFile.
func everyFact() []events.Recorded {
	development := events.EnvironmentRef{ID: "e2", Name: "development"}
	at := time.Date(2126, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	var conditions []events.Condition
	for _, o := range rules.Operators() {
		conditions = append(
			conditions,
			events.Condition{
				Attribute: "a." + string(o.Name),
				Op:        o.Name,
				Negate:    len(conditions)%2 == 1,
				Values:    raw(operand[o.Values]),
			},
		)
	}
	conditions = append(conditions,
		events.Condition{Attribute: events.TargetingKey, Op: events.In, Values: raw(`["1","2","3","4","5","6","7","8","9"]`)})
	all := events.Rule{
		ID:         "r1",
		Name:       "all",
		Salt:       "salt",
		Conditions: conditions,
		Serve:      rolled("company.id", half("a"), half("b")),
	}
	streams := []struct {
		name  string
		facts []events.Fact
	}{
		{
			"tenant-t",
			[]events.Fact{
				events.TenantCreated{
					ID:            "t",
					Name:          "Acme",
					Sandbox:       true,
					Plan:          events.SandboxPlan,
					SandboxEndsAt: at,
				},
				events.EnvironmentAdded{Environment: production},
				events.EnvironmentAdded{
					Environment: development,
				},
				events.EnvironmentDeleted{Environment: development},
				events.EnvironmentAdded{Environment: events.EnvironmentRef{ID: "e3", Name: "development"}},
				events.EnvironmentsArranged{To: []events.ArrangedEnvironment{
					{Environment: production, Color: "#e03131"},
					{Environment: events.EnvironmentRef{ID: "e3", Name: "development"}, Color: "#1c7ed6"},
				}},
				events.TenantUpdated{
					Name:    &events.Change[string]{To: "Acme Inc."},
					Contact: []events.ContactField{events.PrimaryEmail, events.ContactName},
				},
				events.FlagRulesChanged{To: events.FlagRules{
					Naming:        &events.FlagNaming{Pattern: "[a-z]+-.+", Example: "shop-cart", Hint: "the team first"},
					RequireReason: []events.EnvironmentRef{production, development},
					RequireOwner:  true,
				}},
				events.MemberAdded{UserID: "u1", Role: events.AdminRole},
				events.MemberAdded{UserID: "u2", Role: events.AdminRole},
				events.MemberInvited{
					ID:   "m1",
					Role: events.ViewerRole,
				},
				events.MemberJoined{ID: "m1", UserID: "u3", Role: events.ViewerRole},
				events.MemberRoleChanged{
					UserID: "u3",
					From:   events.ViewerRole,
					To:     events.DeveloperRole,
				},
				events.MemberRemoved{UserID: "u2"},
				events.OAuthClientCreated{
					ClientID:   "c1",
					Name:       "Backend",
					Scopes:     []events.Scope{events.FlagsEvaluate},
					SecretHash: []byte{1, 2},
				},
				events.OAuthSecretRotated{
					ClientID:      "c1",
					SecretHash:    []byte{3, 4},
					PreviousUntil: at,
				},
				events.OAuthClientCreated{ClientID: "c2"},
				events.OAuthClientDeleted{ClientID: "c2"},
				events.EvaluationKeyAdded{
					KeyID:       "k1",
					Name:        "Shop",
					Kind:        events.BrowserKey,
					Environment: development,
					Origins:     []string{"https://example.com"},
					KeyMaterial: events.KeyMaterial{Key: "pk_a", SigningID: "s1"},
				},
				events.EvaluationKeyChanged{
					KeyID: "k1", ExpiresAt: &events.Change[*time.Time]{To: new(at.Add(48 * time.Hour))},
				},
				events.EvaluationKeyRotated{
					KeyID:         "k1",
					KeyMaterial:   events.KeyMaterial{Key: "pk_a", SigningID: "s2"},
					PreviousUntil: at.Add(24 * time.Hour),
				},
				events.EvaluationKeyAdded{KeyID: "k2", Environment: development},
				events.EvaluationKeyRemoved{KeyID: "k2"},
				events.SubscriptionChanged{To: events.Subscription{
					ID:                "sub",
					CustomerID:        "cus",
					Plan:              events.StandardPlan,
					Status:            events.PastDue,
					BillingCycle:      events.Monthly,
					PeriodStart:       at,
					PeriodEnd:         at,
					CancelAtPeriodEnd: true,
					PastDueSince:      at,
				}},
			},
		},
		{
			"tenant-gone",
			[]events.Fact{
				events.TenantCreated{
					ID:   "gone",
					Plan: events.FreePlan,
				},
				events.MemberAdded{UserID: "u1", Role: events.ViewerRole},
				events.OAuthClientCreated{ClientID: "c3"},
				events.TenantDeleted{},
			},
		},
		{
			"project-p1",
			[]events.Fact{
				events.ProjectCreated{ID: "p1", TenantID: "t"},
				events.ProjectUpdated{Name: &events.Change[string]{To: "b"}},
			},
		},
		{"project-p2", []events.Fact{events.ProjectCreated{ID: "p2", TenantID: "t"}, events.ProjectDeleted{}}},
		{
			"flag-t.k",
			[]events.Fact{
				events.FlagCreated{
					TenantID:     "t",
					Key:          "k",
					ID:           "f1",
					Type:         events.NumberFlag,
					DefaultValue: []byte("9007199254740993"),
					ProjectID:    "p1",
					Salt:         "s",
					Variations:   []events.Variation{choice("a", "1", 12_500), choice("b", "2.50", 0), choice("d", "3", 1)},
				},
				on,
				events.FlagEnabled{Environment: development},
				events.FlagDisabled{Environment: development},
				events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: []byte("3")}},
				events.VariationAdded{
					Variation: choice("c", `{"a":[null]}`, 50_000),
				},
				events.VariationUpdated{ID: "b", Weight: &events.Change[events.Weight]{To: 7}},
				ruled(all, when("r2", "pro", toA), when("r3", "free", seven)),
				rulesIn(development, when("r4", "pro", events.Serve{VariationID: "d"})),
				events.VariationRemoved{Variation: choice("d", "3", 1)},
				events.FlagReverted{
					Version:    1,
					Variations: &events.Change[[]string]{To: []string{"c", "a", "b"}},
				},
				otherwise(toB),
				events.FallthroughChanged{Environment: development, To: &seven},
				events.PrerequisitesChanged{
					Environment: production, To: []events.Prerequisite{{FlagKey: "archived", Off: true}},
				},
			},
		},
		{
			"flag-t.archived",
			[]events.Fact{
				keyed("archived", made(events.BooleanFlag, "false")),
				events.FlagStatusChanged{To: events.ArchivedFlag},
			},
		},
		{
			"flag-t.inactive",
			[]events.Fact{
				keyed("inactive", made(events.JSONFlag, "null")),
				on,
				events.FlagStatusChanged{To: events.InactiveFlag},
			},
		},
		{"flag-t.deleted", []events.Fact{made(events.BooleanFlag, "false"), events.FlagDeleted{}}},
		{
			"user-u1",
			[]events.Fact{
				events.UserRegistered{
					ID: "u1",
				},
				events.PlatformRoleChanged{To: events.SuperUser},
				events.UserDeactivated{},
				events.UserReactivated{},
				events.SessionEnded{UserID: "u1", SessionID: "s1", Until: at},
				events.SessionsEnded{Before: at, Except: "s2"},
			},
		},
		{"user-u3", []events.Fact{events.UserDeactivated{}}},
		{"user-u4", []events.Fact{events.PlatformRoleChanged{To: events.PlatformViewer}, events.UserErased{}}},
		{
			"segment-t.beta",
			[]events.Fact{
				events.SegmentCreated{TenantID: "t", Key: "beta", ID: "s", Name: "Beta", Tags: []string{"x"}},
				events.SegmentUpdated{Name: &events.Change[string]{From: "Beta", To: "Testers"}},
				events.ChangeSegmentRules(nil, []events.Rule{{ID: "sr", Conditions: []events.Condition{
					{Op: events.InSegment, Values: raw(`["gone"]`)},
				}}}),
				events.SegmentMembersAdded{List: events.Included, Members: []string{"u1", "u2"}},
				events.SegmentMembersRemoved{List: events.Included, Members: []string{"u2"}},
				events.SegmentMembersAdded{List: events.Excluded, Members: []string{"u3"}},
				events.SegmentReverted{Version: 3},
			},
		},
		{
			"segment-t.private",
			[]events.Fact{
				events.SegmentCreated{TenantID: "t", Key: "private", ID: "p", Name: "private", Private: true, SaltID: "s1"},
				events.SegmentMembersAdded{List: events.Included, Hashes: []string{"1234"}},
				events.SegmentForgotten{SaltID: "s2"},
			},
		},
		{
			"segment-t.gone",
			[]events.Fact{events.SegmentCreated{TenantID: "t", Key: "gone", ID: "g", Name: "gone"}, events.SegmentDeleted{}},
		},
		{
			"invitation-i",
			[]events.Fact{
				events.InvitationCreated{ID: "i"},
				events.InvitationResent{},
				events.InvitationRevoked{},
				events.InvitationAccepted{},
			},
		},
	}
	var log []events.Recorded
	for _, stream := range streams {
		for i, fact := range stream.facts {
			e := recorded(stream.name, events.Revision(i+1), fact)
			e.Position = events.Position{Commit: uint64(len(log) + 1), Prepare: uint64(len(log) + 1)}
			log = append(log, e)
		}
	}
	return log
}

func keyed(key string, fact events.FlagCreated) events.FlagCreated {
	fact.Key = key
	return fact
}

// A file must be read with the same result as its facts. If this test fails, released files would be misread: raise
// fileVersion, and write the golden file of the new version with `go test ./projections/snapshot -run TestGoldenFile
// -update`.
func TestGoldenFile(t *testing.T) {
	golden := filepath.Join("testdata", fmt.Sprintf("v%d.snapshot", fileVersion))
	log := everyFact()
	s := New(Options{})
	s.applyAll(log)
	s.position.Store(&events.Position{Commit: 71, Prepare: 71}) // the file's, also once the log has further facts
	s.last = events.RefTo(recorded("invitation-i", 4, events.InvitationAccepted{}))
	if s.Faults() > 0 {
		t.Fatalf("%d facts could not be applied", s.Faults())
	}
	if _, err := os.Stat(golden); *update && err != nil { // a released one never changes
		if _, err := s.copyContents().write(golden, atOnce); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	read, err := readBytes(data)
	if err != nil {
		t.Fatalf("%s: %v; if the file is to be another one, raise fileVersion and run with -update", golden, err)
	}
	if d := difference(read, s); d != "" {
		t.Errorf("what facts make is no longer what files of version %d hold (-): raise fileVersion and run with -update\n%s",
			fileVersion, d)
	}
	version, known := regexp.MustCompile(`\.v[0-9]+\.json$`), map[string]bool{}
	for _, e := range log {
		known[e.Name] = true
	}
	facts, err := filepath.Glob("../../events/testdata/*.json")
	if err != nil || len(facts) == 0 {
		t.Fatalf("no facts are found: %v", err)
	}
	for _, path := range facts {
		name := version.ReplaceAllString(filepath.Base(path), "")
		if !known[name] {
			t.Errorf("everyFact has no %s: add one; raise fileVersion and run with -update only if the golden file differs then",
				name)
		}
	}
}

// smallFile writes a file with everything in it.
func smallFile(t testing.TB) (path string, data []byte) {
	t.Helper()
	s := New(Options{})
	s.applyAll(everyFact())
	path = filepath.Join(t.TempDir(), "snapshot")
	if _, err := s.copyContents().write(path, atOnce); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

func TestADamagedFileIsNotRead(t *testing.T) {
	_, data := smallFile(t)
	refused := func(what string, damaged []byte) {
		if _, err := readBytes(damaged); !errors.Is(err, errDamaged) && !errors.Is(err, errOtherVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range data {
		for _, mask := range []byte{1, 0x80, 0xff} {
			flipped := bytes.Clone(data)
			flipped[i] ^= mask
			refused(fmt.Sprintf("byte %d is another", i), flipped)
		}
		refused(fmt.Sprintf("cut off after %d bytes", i), data[:i])
	}
	refused("longer", append(bytes.Clone(data), 0))
	refused("twice", append(bytes.Clone(data), data...))
}

func TestAFileOfAnotherVersionIsNotRead(t *testing.T) {
	_, data := smallFile(t)
	other := bytes.Replace(data, []byte(firstLine), bytes.Replace([]byte(firstLine), []byte(" v"), []byte(" v1"), 1), 1)
	if _, err := readBytes(other); !errors.Is(err, errOtherVersion) {
		t.Errorf("got %v", err)
	}
}

// A large file takes seconds to read. A start that has read it for its position reuses it.
func TestAFileThatWasReadIsNotReadAgain(t *testing.T) {
	path, _ := smallFile(t)
	saved, err := ReadSaved(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	store := &outage{}
	saved.Checkpoint.Engine = store.Engine()
	var began events.LogPosition
	s := New(Options{File: path, Saved: saved, Began: func(at events.LogPosition) { began = at }})
	gone, goAway := context.WithCancel(t.Context())
	goAway()
	s.begin(gone, store, slog.New(slog.DiscardHandler))
	if _, known := s.Tenant("t"); !known || began != saved.Checkpoint || s.copy.saved != nil {
		t.Errorf("the tenant is known: %t, it began at %v and still holds %v", known, began, s.copy.saved)
	}
}

func TestOnlyItsOwnerMayReadTheFile(t *testing.T) {
	path, _ := smallFile(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}

// FuzzRecords reads foreign records with valid checksums. The result can be evaluated, and stays the same when it is
// written and read again.
func FuzzRecords(f *testing.F) {
	_, data := smallFile(f)
	rest := data[len(firstLine):]
	header := rest[8 : 8+binary.LittleEndian.Uint32(rest)]
	block := rest[8+len(header)+8:]
	f.Add(block[:len(block)-8])
	for _, r := range []record{
		{Tenant: &savedTenant{ID: "t"}},
		{Flags: &savedFlags{TenantID: "t", Flags: []*state.Flag{nil, {Exists: true}}}},
		{Users: []savedUser{{ID: "u"}}, Clients: []Client{{ID: "c"}}, Ended: []savedSession{{}}},
	} {
		encoded, err := encoding.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	path := filepath.Join(f.TempDir(), "snapshot")
	f.Fuzz(func(t *testing.T, records []byte) {
		data := []byte(firstLine)
		for i, block := range [][]byte{header, records, nil} {
			data = append(append(data, frame(uint32(i), block)...), block...)
		}
		s, err := readBytes(data)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Error(err)
			}
			return
		}
		if d := difference(s, reloaded(t, s, path)); d != "" {
			t.Errorf("written and read again (+): %s", d)
		}
	})
}
