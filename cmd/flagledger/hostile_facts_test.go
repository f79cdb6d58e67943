package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/export"
)

// fact is a fact in a file, recorded at a time.
func fact(stream string, revision events.Revision, at time.Time, f events.Fact) events.Recorded {
	e := events.Event{
		ID: uuid.New(),
		Metadata: events.Metadata{
			Time:  at.Truncate(time.Millisecond),
			Actor: events.Actor{Kind: events.SystemActor, ID: "test"},
		},
		Fact: f,
	}
	stored, err := events.Encode(e)
	if err != nil {
		panic(err)
	}
	if given, ok := f.(events.Stored); ok {
		stored.Version = max(1, given.Version)
	}
	stored.At = at
	return events.Recorded{Event: e, Stream: stream, Revision: revision, At: at, Name: stored.Name, Stored: stored}
}

// factsFile writes a complete, undamaged file with any facts, and rewrites its lines before the last.
func factsFile(
	t *testing.T, tenantID string, rewrite func(lines string) string, list ...events.Recorded,
) (path string) {
	t.Helper()
	var out bytes.Buffer
	w, err := export.NewWriter(&out, export.NewHeader("log", tenantID, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := out.String()
	if rewrite != nil {
		if lines = rewrite(lines); lines == out.String() {
			t.Fatal("the lines are the same")
		}
	}
	lines += fmt.Sprintf("{\"facts\":%d,\"sha256\":\"%x\"}\n", len(list), sha256.Sum256([]byte(lines)))
	path = filepath.Join(t.TempDir(), "facts.ndjson")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Anyone can make a file with a valid SHA-256, so its content is checked before anything is written.
func TestNothingIsImportedOfAHostileFile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.UTC)
	mine := fact("tenant-t", 1, at, events.TenantCreated{ID: "t", Plan: events.FreePlan})
	next := func(f events.Fact) events.Recorded { return fact("tenant-t", 2, at, f) }
	replaced := func(from, to string) func(string) string {
		return func(lines string) string { return strings.Replace(lines, from, to, 1) }
	}
	twice, offset := next(events.TenantDeleted{}), next(events.TenantDeleted{})
	twice.ID, twice.Stored.ID = mine.ID, mine.ID
	offset.Time = at.In(time.FixedZone("", 7200))
	segment := events.SegmentCreated{TenantID: "t", Key: "a"}
	flag := events.FlagCreated{TenantID: "t", Key: "a", Type: events.BooleanFlag, DefaultValue: []byte("false")}
	ofOther := flag
	ofOther.TenantID = "other"
	for what, c := range map[string]struct {
		tenantID string
		list     []events.Recorded
		rewrite  func(string) string
		want     string
	}{
		"a person's role":              {"t", []events.Recorded{mine, fact("user-u", 1, at, events.PlatformRoleChanged{To: events.SuperUser})}, nil, "user-u@1, user.platform_role_changed, does not belong to the tenant t"},
		"another tenant":               {"t", []events.Recorded{mine, fact("tenant-o", 1, at, events.TenantCreated{ID: "o", Plan: events.EnterprisePlan})}, nil, "tenant-o@1"},
		"another tenant's plan":        {"t", []events.Recorded{mine, fact("tenant-t2", 1, at, events.SubscriptionChanged{To: events.Subscription{Plan: events.EnterprisePlan}})}, nil, "tenant-t2@1"},
		"an invitation":                {"t", []events.Recorded{mine, fact("invitation-i", 1, at, events.InvitationCreated{Role: events.PlatformAdmin})}, nil, "invitation-i@1"},
		"another tenant's flag":        {"t", []events.Recorded{mine, fact("flag-t2.a", 1, at, ofOther)}, nil, "flag-t2.a@1"},
		"another tenant's project":     {"t", []events.Recorded{mine, fact("project-p", 1, at, events.ProjectCreated{ID: "p", TenantID: "other"})}, nil, "project-p@1"},
		"a project never created":      {"t", []events.Recorded{mine, fact("project-p", 1, at, events.ProjectDeleted{})}, nil, "project-p@1"},
		"a tenant whose id has a dot":  {"t.a", []events.Recorded{fact("flag-t.a.b", 1, at, events.FlagDeleted{})}, nil, "flag-t.a.b@1"},
		"a flag that names another":    {"t", []events.Recorded{mine, fact("flag-t.a", 1, at, ofOther)}, nil, "flag-t.a@1, flag.created, belongs to another stream"},
		"another tenant's segment":     {"t", []events.Recorded{mine, fact("segment-t2.a", 1, at, segment)}, nil, "segment-t2.a@1"},
		"a segment that names another": {"t", []events.Recorded{mine, fact("segment-t.b", 1, at, segment)}, nil, "segment-t.b@1, segment.created, belongs to another stream"},
		"a flag's fact of a segment":   {"t", []events.Recorded{mine, fact("segment-t.a", 1, at, flag)}, nil, "segment-t.a@1"},
		"a project that names another": {"", []events.Recorded{fact("project-p", 1, at, events.ProjectCreated{ID: "q", TenantID: "t"})}, nil, "project-p@1"},
		"a tenant that names another":  {"", []events.Recorded{fact("tenant-t", 1, at, events.TenantCreated{ID: "q"})}, nil, "tenant-t@1"},
		"a person who names another":   {"", []events.Recorded{fact("user-u", 1, at, events.UserRegistered{ID: "q"})}, nil, "user-u@1"},
		"an invitation of another": {"", []events.Recorded{fact("invitation-i", 1, at, events.InvitationCreated{ID: "q"})}, nil,
			"invitation-i@1"},
		"another tenant's client": {"t", []events.Recorded{mine, next(events.OAuthClientCreated{ClientID: "theirs"})}, nil,
			"the id theirs belongs to tenant-other"},
		"an end of another's client": {"t", []events.Recorded{mine, next(events.OAuthClientDeleted{ClientID: "theirs"})}, nil,
			"the id theirs belongs to tenant-other"},
		"an end of another's environment": {
			"t", []events.Recorded{mine, next(events.EnvironmentDeleted{Environment: events.EnvironmentRef{ID: "env", Name: "e"}})}, nil,
			"the id env belongs to tenant-other",
		},
		"a fact of 2031":                {"t", []events.Recorded{mine, fact("tenant-t", 2, time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), events.TenantDeleted{})}, nil, "--accept-times-until"},
		"a fact of in two hours":        {"", []events.Recorded{mine, fact("tenant-t", 2, time.Now().UTC().Add(2*time.Hour).Truncate(time.Microsecond), events.TenantDeleted{})}, nil, "tenant-t@2"},
		"a fact that nobody knows":      {"t", []events.Recorded{mine, next(events.Stored{Name: "tenant.of_tomorrow", Data: []byte("{}")})}, nil, "tenant-t@2 cannot be read"},
		"a fact of a later version":     {"t", []events.Recorded{mine, next(events.Stored{Name: "tenant.deleted", Version: 9, Data: []byte("{}")})}, nil, "tenant-t@2 cannot be read"},
		"a fact of another shape":       {"t", []events.Recorded{mine, next(events.Stored{Name: "tenant.deleted", Data: []byte("[1]")})}, nil, "tenant-t@2 cannot be read"},
		"a fact of another kind":        {"t", []events.Recorded{mine, next(events.Stored{Name: "user.registered", Data: []byte(`{"id":"u"}`)})}, nil, "tenant-t@2 cannot be read"},
		"an id twice":                   {"t", []events.Recorded{mine, twice}, nil, "occurs twice"},
		"a metadata time in other zone": {"t", []events.Recorded{mine, offset}, nil, "not in UTC"},
		"a time with a comma":           {"t", []events.Recorded{mine}, replaced(":05.120000Z", ":05,120000Z"), "recorded"},
		"a time with three digits":      {"t", []events.Recorded{mine}, replaced(":05.120000Z", ":05.120Z"), "recorded"},
		"a time with an offset":         {"t", []events.Recorded{mine}, replaced(":05.120000Z", ":05.120000+00:00"), "recorded"},
		"an hour of one digit":          {"t", []events.Recorded{mine}, replaced("T03:", "T3:"), "recorded"},
		"a time that counts as none":    {"t", []events.Recorded{mine}, replaced("2026-01-02T03:04:05.120000Z", "0001-01-01T00:00:00.000000Z"), "recorded"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			to := emptyPostgres(t)
			held := []events.Event{
				fact("", 0, at, events.TenantCreated{ID: "other", Plan: events.FreePlan}).Event,
				fact("", 0, at, events.OAuthClientCreated{ClientID: "theirs"}).Event,
				fact("", 0, at, events.EnvironmentAdded{Environment: events.EnvironmentRef{ID: "env", Name: "e"}}).Event,
			}
			if _, err := to.Append(t.Context(), "tenant-other", 0, held); err != nil {
				t.Fatal(err)
			}
			path := factsFile(t, c.tenantID, c.rewrite, c.list...)
			if _, _, err := imported(t, to, path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the import: %v, want an error with %q", err, c.want)
			}
			if n := length(t, to) - len(held); n > 0 {
				t.Errorf("%d facts were written", n)
			}
			if c.rewrite != nil { // files of other forms are not verified either
				if err := (verifyTrailCommand{Export: path}).verifyFile(); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("verify: %v, want an error with %q", err, c.want)
				}
			}
		})
	}
}

// The id of a fact that the store holds elsewhere is refused too.
func TestAnIDOfTheStoreIsNotImportedElsewhere(t *testing.T) {
	t.Parallel()
	to := emptyPostgres(t)
	write(t, to, "tenant-other", 0, events.TenantCreated{ID: "other"})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := fact("tenant-t", 1, at, events.TenantCreated{ID: "t"})
	for held, err := range to.Read(t.Context(), "tenant-other", 0) {
		if err != nil {
			t.Fatal(err)
		}
		e.ID, e.Stored.ID = held.ID, held.ID
	}
	if _, _, err := imported(t, to, factsFile(t, "t", nil, e)); err == nil ||
		!strings.Contains(err.Error(), "tenant-other@1 and tenant-t@1") {
		t.Errorf("%v, want an error that names both places", err)
	}
	if n := length(t, to); n != 1 {
		t.Errorf("there are %d facts, want 1", n)
	}
}

// A log whose clock ran ahead can be restored and copied if its operator states until when it did.
func TestFactsFromTheFutureAreTakenUntilATimeThatIsNamed(t *testing.T) {
	t.Parallel()
	for name, open := range betweenEngines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to, copied := open[0](t), open[1](t), open[1](t)
			at := time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond)
			e := fact("tenant-t", 1, at, events.TenantCreated{ID: "t"})
			e.Stored.AcceptUntil = at
			if _, err := from.Append(
				t.Context(), e.Stream, 0, []events.Event{{ID: e.ID, Metadata: e.Metadata, Fact: e.Stored}},
			); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "facts.ndjson")
			exported(t, from, "", path)
			accept := AcceptTimes{at}
			for _, early := range []AcceptTimes{{}, {at.Add(-time.Microsecond)}} {
				if _, _, err := importFacts(
					t.Context(), path, to, early, nodetest.Log(t), func(string) error { return nil },
				); err == nil {
					t.Errorf("facts up to %v are imported until %v", at, early)
				}
				if err := copyEvents(t.Context(), from, copied, early, nodetest.Log(t)); err == nil {
					t.Errorf("facts up to %v are copied until %v", at, early)
				}
			}
			if n := length(t, to) + length(t, copied); n > 0 {
				t.Errorf("%d facts were written", n)
			}
			if _, _, err := importFacts(
				t.Context(), path, to, accept, nodetest.Log(t), func(string) error { return nil },
			); err != nil {
				t.Error(err)
			}
			if err := copyEvents(t.Context(), from, copied, accept, nodetest.Log(t)); err != nil {
				t.Error(err)
			}
			write(t, to, "tenant-t", 1, events.TenantDeleted{}) // the log continues
		})
	}
}

func TestNothingIsCopiedOfAHostileStore(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fact events.Fact
		want string
	}{
		"a fact that nobody knows":     {events.Stored{Name: "user.of_tomorrow", Version: 7, Data: []byte("{}")}, "user-u@2 cannot be read"},
		"a fact of another kind":       {events.FlagDeleted{}, "user-u@2 cannot be read"},
		"an id that the store has got": {events.UserDeactivated{}, "occurs twice"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			from, to := emptyEventStore(t), emptyPostgres(t)
			write(t, from, "user-u", 0, events.UserRegistered{ID: "u"})
			id := uuid.New()
			if _, err := from.Append(t.Context(), "user-u", 1, []events.Event{{ID: id, Fact: c.fact}}); err != nil {
				t.Fatal(err)
			}
			held := 0
			if c.want == "occurs twice" {
				held = 1
				if _, err := to.Append(
					t.Context(), "user-v", 0, []events.Event{{ID: id, Fact: events.UserRegistered{ID: "v"}}},
				); err != nil {
					t.Fatal(err)
				}
			}
			if err := copyEvents(t.Context(), from, to, AcceptTimes{}, nodetest.Log(t)); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
			if n := length(t, to); n != held {
				t.Errorf("there are %d facts, want %d", n, held)
			}
		})
	}
}

// An export continues only an interrupted export; any other file stays unchanged.
func TestAnExportOverwritesNoOtherFile(t *testing.T) {
	t.Parallel()
	from := emptyPostgres(t)
	fill(t, from)
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	exported(t, from, "", path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"a key without a line feed":  "-----BEGIN PRIVATE KEY-----",
		"JSON without a line feed":   `{"format":"flagledger facts","version":1,"log":"another`,
		"lines":                      "a\nb\n",
		"an export of another log":   `{"format":"flagledger facts","version":1,"log":"another"}` + "\n",
		"much without one line feed": strings.Repeat("x", 3*events.MaxEventBytes),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := exportFacts(t.Context(), from, "", "key", path, nodetest.Log(t)); err == nil {
			t.Errorf("%s: it was exported", what)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s: the file has changed: %d bytes, %v", what, len(got), err)
		}
	}
	for _, size := range []int{0, 1, 20, bytes.IndexByte(whole, '\n'), len(whole) / 2} {
		if err := os.WriteFile(path, whole[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		exported(t, from, "", path)
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, whole) {
			t.Errorf("cut off after %d bytes, it goes on as another file of %d bytes: %v", size, len(got), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v, %v", info.Mode(), err)
		}
	}
}
