package events

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files of versions that have none")

// examples has a fact of every kind, with all fields of its first release.
var examples = []Fact{
	FlagCreated{
		TenantID:     "t1",
		Key:          "checkout",
		ID:           "f1",
		Name:         "Checkout",
		Type:         NumberFlag,
		DefaultValue: json.RawMessage(`9007199254740993`),
		Description:  "New checkout",
		Tags:         []string{"web"},
		ProjectID:    "p1",
		Permanent:    true,
		Salt:         "s1",
		Variations: []Variation{
			{ID: "v1", Name: "low", Value: json.RawMessage(`1.50`), Description: "less", Weight: 12_500},
		},
	},
	FlagUpdated{
		Name:        &Change[string]{"a", "b"},
		Description: &Change[string]{"", "c"},
		Tags:        &Change[[]string]{nil, []string{"x"}},
		DefaultValue: &Change[json.RawMessage]{
			json.RawMessage(`"<"`),
			json.RawMessage(`"\u003e"`),
		},
		ProjectID: &Change[string]{"p1", ""},
		Permanent: &Change[bool]{false, true},
	},
	FlagStatusChanged{From: ActiveFlag, To: ArchivedFlag},
	FlagEnabled{EnvironmentRef{ID: "e1", Name: "production"}},
	FlagDisabled{EnvironmentRef{ID: "e1", Name: "production"}},
	VariationAdded{Variation{ID: "v1", Name: "low", Value: json.RawMessage(`{"a":1}`)}},
	VariationUpdated{
		ID:          "v1",
		Name:        &Change[string]{"low", "high"},
		Value:       &Change[json.RawMessage]{json.RawMessage(`1`), json.RawMessage(`2`)},
		Description: &Change[string]{"less", "more"},
		Weight:      &Change[Weight]{0, 33_333},
	},
	VariationRemoved{Variation{ID: "v1", Name: "low", Value: json.RawMessage(`1`)}},
	RulesChanged{
		Environment: EnvironmentRef{ID: "e1", Name: "production"},
		Added: []Rule{
			{
				ID:   "r1",
				Name: "beta testers",
				Salt: "s2",
				Conditions: []Condition{
					{
						Attribute: "plan",
						Op:        In,
						Values:    []json.RawMessage{json.RawMessage(`"pro"`), json.RawMessage(`1.0`)},
						Negate:    true,
					},
				},
				Serve: Serve{Rollout: []Share{{"v1", 20_000}, {"v2", 80_000}}, BucketBy: "company.id"},
			},
		},
		Removed: []Rule{
			{
				ID:         "r2",
				Salt:       "s3",
				Conditions: []Condition{{Attribute: "targetingKey", Op: Exists}},
				Serve:      Serve{Value: json.RawMessage(`1.50`)},
			},
		},
		Changed: []Change[Rule]{{
			From: Rule{ID: "r3", Salt: "s4", Conditions: []Condition{}, Serve: Serve{VariationID: "v1"}},
			To:   Rule{ID: "r3", Name: "everyone", Salt: "s4", Conditions: []Condition{}, Serve: Serve{VariationID: "v2"}},
		}},
		Order: &Change[[]string]{[]string{"r2", "r3"}, []string{"r3", "r1"}},
	},
	FallthroughChanged{
		Environment: EnvironmentRef{ID: "e1", Name: "production"},
		From:        &Serve{Value: json.RawMessage(`"<"`)},
		To:          &Serve{VariationID: "v1"},
	},
	PrerequisitesChanged{
		Environment: EnvironmentRef{ID: "e1", Name: "production"},
		From:        []Prerequisite{{FlagKey: "kill-checkout", Off: true}},
		To: []Prerequisite{
			{FlagKey: "payments", Serves: []ServedValue{{VariationID: "v1"}, {Value: json.RawMessage(`"<"`)}}},
		},
	},
	FlagDeleted{},
	FlagReverted{
		Version:     7,
		At:          time.Date(2026, 1, 2, 3, 4, 5, 6_789_000, time.UTC),
		Environment: &EnvironmentRef{ID: "e1", Name: "production"},
		Variations:  &Change[[]string]{[]string{"v1", "v2"}, []string{"v2", "v1"}},
	},
	SegmentCreated{
		TenantID: "t1", Key: "beta", ID: "g1", Name: "Beta testers", Description: "Who asked", Tags: []string{"web"},
	},
	SegmentUpdated{
		Name:        &Change[string]{"a", "b"},
		Description: &Change[string]{"", "c"},
		Tags:        &Change[[]string]{nil, []string{"x"}},
	},
	SegmentRulesChanged{
		Added: []Rule{{
			ID: "r1", Name: "staff",
			Conditions: []Condition{
				{Op: InSegment, Values: []json.RawMessage{json.RawMessage(`"staff"`)}, Negate: true},
				{Attribute: "email", Op: EndsWith, Values: []json.RawMessage{json.RawMessage(`"@acme.com"`)}},
			},
		}},
		Removed: []Rule{{ID: "r2", Conditions: []Condition{{Attribute: "plan", Op: Exists}}}},
		Changed: []Change[Rule]{{
			From: Rule{ID: "r3", Conditions: []Condition{}},
			To:   Rule{ID: "r3", Name: "everyone", Conditions: []Condition{}},
		}},
		Order: &Change[[]string]{[]string{"r2", "r3"}, []string{"r3", "r1"}},
	},
	SegmentMembersAdded{List: Included, Members: []string{"user-1", "user-2"}},
	SegmentMembersRemoved{List: Excluded, Members: []string{"user-3"}},
	SegmentForgotten{SaltID: "s2"},
	SegmentDeleted{},
	SegmentReverted{Version: 7, At: time.Date(2026, 1, 2, 3, 4, 5, 6_789_000, time.UTC)},
	ProjectCreated{ID: "p1", TenantID: "t1", Name: "Web", Description: "The site", Color: "#6b7280"},
	ProjectUpdated{
		Name:        &Change[string]{"a", "b"},
		Description: &Change[string]{"", "c"},
		Color:       &Change[string]{"#000000", "#ffffff"},
	},
	ProjectDeleted{},
	TenantCreated{
		ID:            "t1",
		Name:          "Acme",
		Sandbox:       true,
		Plan:          SandboxPlan,
		SandboxEndsAt: time.Date(2026, 1, 16, 3, 4, 5, 0, time.UTC),
	},
	EnvironmentAdded{EnvironmentRef{ID: "e1", Name: "production"}, "#0c8599"},
	MemberAdded{UserID: "u1", Role: AdminRole},
	EnvironmentDeleted{EnvironmentRef{ID: "e1", Name: "staging"}},
	EnvironmentsArranged{
		From: []ArrangedEnvironment{
			{EnvironmentRef{ID: "e1", Name: "production"}, "#e03131"}, {EnvironmentRef{ID: "e2", Name: "staging"}, "#1c7ed6"},
		},
		To: []ArrangedEnvironment{
			{EnvironmentRef{ID: "e2", Name: "staging"}, "#ffd43b"}, {EnvironmentRef{ID: "e1", Name: "production"}, "#e03131"},
		},
	},
	TenantUpdated{Name: &Change[string]{"Acme", "Acme Inc."}, Contact: []ContactField{PrimaryEmail, ContactName}},
	FlagRulesChanged{
		From: FlagRules{RequireOwner: true},
		To: FlagRules{
			Naming:        &FlagNaming{Pattern: "[a-z]+-.+", Example: "shop-cart", Hint: "the team first"},
			RequireReason: []EnvironmentRef{{ID: "e1", Name: "production"}},
			RequireOwner:  true,
		},
	},
	TenantDeleted{},
	MemberInvited{ID: "m1", Role: ViewerRole},
	MemberJoined{ID: "m1", UserID: "u1", Role: ViewerRole},
	MemberRoleChanged{UserID: "u1", From: ViewerRole, To: AdminRole},
	MemberRemoved{UserID: "u1"},
	OAuthClientCreated{
		ClientID:   "c1",
		Name:       "Backend",
		Scopes:     []Scope{FlagsRead, FlagsEvaluate},
		SecretHash: []byte{0, 1, 254, 255},
	},
	OAuthSecretRotated{
		ClientID:      "c1",
		SecretHash:    []byte{2, 3},
		PreviousUntil: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	},
	OAuthClientDeleted{ClientID: "c1"},
	EvaluationKeyAdded{
		KeyID:       "k1",
		Name:        "Shop",
		Kind:        BrowserKey,
		Environment: EnvironmentRef{ID: "e1", Name: "production"},
		Origins:     []string{"https://*.example.com"},
		Edge:        true,
		ExpiresAt:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		KeyMaterial: KeyMaterial{Key: "pk_a", Hash: []byte{0, 255}, SigningID: "s1"},
	},
	EvaluationKeyChanged{
		KeyID:     "k1",
		Name:      &Change[string]{"a", "b"},
		Origins:   &Change[[]string]{nil, []string{"https://example.com"}},
		ExpiresAt: &Change[*time.Time]{nil, new(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
	},
	EvaluationKeyRotated{
		KeyID:         "k1",
		KeyMaterial:   KeyMaterial{Key: "pk_b", Hash: []byte{2, 3}, SigningID: "s2"},
		PreviousUntil: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	},
	EvaluationKeyRemoved{KeyID: "k1"},
	SubscriptionChanged{
		From: Subscription{Plan: FreePlan, Status: NoSubscription},
		To: Subscription{
			ID:                "sub_1",
			CustomerID:        "cus_1",
			Plan:              StandardPlan,
			Status:            PastDue,
			BillingCycle:      Monthly,
			CancelAtPeriodEnd: true,
			PeriodStart:       time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			PeriodEnd:         time.Date(2026, 2, 2, 3, 4, 5, 0, time.UTC),
			PastDueSince:      time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC),
		},
	},
	UserRegistered{ID: "u1", Provider: "password"},
	SessionsEnded{Before: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Except: "s1"},
	SessionEnded{UserID: "u1", SessionID: "s1", Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	PlatformRoleChanged{From: PlatformViewer, To: SuperUser},
	UserDeactivated{},
	UserReactivated{},
	UserErased{},
	InvitationCreated{ID: "i1", Role: PlatformAdmin, ExpiresAt: time.Date(2026, 1, 9, 3, 4, 5, 0, time.UTC)},
	InvitationResent{ExpiresAt: time.Date(2026, 1, 10, 3, 4, 5, 0, time.UTC)},
	InvitationRevoked{},
	InvitationAccepted{UserID: "u1"},
}

func example(fact Fact) Event {
	return Event{
		ID: uuid.MustParse("0198f1d2-0000-7000-8000-000000000001"),
		Metadata: Metadata{
			Time:          time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
			Actor:         Actor{UserActor, "u1"},
			RequestID:     "r1",
			CorrelationID: "c1",
			Reason:        "because",
		},
		Fact: fact,
	}
}

func goldenFile(name string, version int) string {
	return filepath.Join("testdata", fmt.Sprintf("%s.v%d.json", name, version))
}

// The current encoding equals the golden file of the current version: a change of shape needs a new version.
func TestGoldenFilesAreWhatIsWritten(t *testing.T) {
	seen := map[string]bool{}
	for _, fact := range examples {
		stored, err := Encode(example(fact))
		if err != nil {
			t.Fatal(err)
		}
		seen[stored.Name] = true
		file := goldenFile(stored.Name, stored.Version)
		if _, err := os.Stat(file); *update && errors.Is(err, os.ErrNotExist) {
			if err := os.WriteFile(file, append(stored.Data, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(stored.Data) + "\n"; got != string(want) {
			t.Errorf("%s writes\n%swhile %s says\n%s", stored.Name, got, file, want)
		}
		back, err := Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(example(fact), back); diff != "" {
			t.Errorf("%s changes on its way through the store (-before +after):\n%s", stored.Name, diff)
		}
	}
	for name := range kinds {
		if !seen[name] {
			t.Errorf("no example of %s", name)
		}
	}
}

// addedLater has facts with the fields that were added without a new version, by their stored form.
var addedLater = map[string]Fact{
	`{"tenantId":"t","key":"k","id":"g","name":"n","private":true,"saltId":"s"}`: SegmentCreated{
		TenantID: "t", Key: "k", ID: "g", Name: "n", Private: true, SaltID: "s",
	},
	`{"list":"included","hashes":["h"]}`: SegmentMembersAdded{List: Included, Hashes: []string{"h"}},
	`{"list":"excluded","hashes":["h"]}`: SegmentMembersRemoved{List: Excluded, Hashes: []string{"h"}},
	`{"tenantId":"t","key":"k","id":"f","name":"n","type":"boolean","defaultValue":true,"clientSide":true,"owner":"u","links":[{"title":"t","url":"https://example.com"}],"offServes":"code","salt":"s"}`: FlagCreated{
		TenantID: "t", Key: "k", ID: "f", Name: "n", Type: BooleanFlag, DefaultValue: json.RawMessage(`true`),
		ClientSide: true, Owner: "u", Links: []Link{{"t", "https://example.com"}}, OffServes: OffServesCode, Salt: "s",
	},
	`{"id":"m","role":"viewer","mustAccept":true}`: MemberInvited{ID: "m", Role: ViewerRole, MustAccept: true},
	`{"clientSide":{"from":false,"to":true}}`:      FlagUpdated{ClientSide: &Change[bool]{false, true}},
	`{"offServes":{"from":"","to":"code"}}`:        FlagUpdated{OffServes: &Change[OffServes]{OffServesValue, OffServesCode}},
	`{"keyId":"k","environment":{"id":"e","name":"n"}}`: EvaluationKeyRemoved{
		KeyID: "k", Environment: EnvironmentRef{"e", "n"},
	},
	`{"keyId":"k","environment":{"id":"e","name":"n"},"name":{"from":"a","to":"b"}}`: EvaluationKeyChanged{
		KeyID: "k", Environment: EnvironmentRef{"e", "n"}, Name: &Change[string]{"a", "b"},
	},
	`{"keyId":"k","environment":{"id":"e","name":"n"},"key":"pk_b","previousUntil":"2026-01-02T03:04:05Z"}`: EvaluationKeyRotated{
		KeyID: "k", Environment: EnvironmentRef{"e", "n"}, KeyMaterial: KeyMaterial{Key: "pk_b"},
		PreviousUntil: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	},
	`{"owner":{"from":"u","to":""}}`: FlagUpdated{Owner: &Change[string]{"u", ""}},
	`{"links":{"from":null,"to":[{"title":"t","url":"https://example.com"}]}}`: FlagUpdated{
		Links: &Change[[]Link]{nil, []Link{{"t", "https://example.com"}}},
	},
}

// A field that was added without a new version is written under its name, and omitted if empty.
func TestFieldsThatWereAddedLater(t *testing.T) {
	for want, fact := range addedLater {
		stored, err := Encode(example(fact))
		if err != nil || string(stored.Data) != want {
			t.Errorf("%s is written as %s: %v", want, stored.Data, err)
		}
		back, err := Decode(stored)
		if diff := cmp.Diff(example(fact), back); err != nil || diff != "" {
			t.Errorf("%s changes on its way through the store: %v (-before +after):\n%s", want, err, diff)
		}
	}
}

// Each field of a fact has an example, so that its stored name cannot change.
func TestEachFieldHasAnExample(t *testing.T) {
	type field struct {
		fact reflect.Type
		name string
	}
	empty := map[field]bool{} // whether a field is empty in all examples
	for _, fact := range slices.AppendSeq(slices.Clone(examples), maps.Values(addedLater)) {
		v := reflect.ValueOf(fact)
		for i := range v.NumField() {
			f := field{v.Type(), v.Type().Field(i).Name}
			others, seen := empty[f]
			empty[f] = v.Field(i).IsZero() && (others || !seen)
		}
	}
	for f, noExample := range empty {
		if noExample {
			t.Errorf("%s.%s is in no example: add a fact with it to addedLater", f.fact, f.name)
		}
	}
}

// Every version that was ever written has a golden file that still decodes.
func TestGoldenFilesDecode(t *testing.T) {
	for name, k := range kinds {
		for version := 1; version <= k.version; version++ {
			t.Run(fmt.Sprintf("%s.v%d", name, version), func(t *testing.T) {
				data, err := os.ReadFile(goldenFile(name, version))
				if err != nil {
					t.Fatal(err)
				}
				e, err := Decode(Stored{Name: name, Version: version, Data: data, Metadata: []byte(`{}`)})
				if err != nil {
					t.Fatal(err)
				}
				if e.Fact.StoredName() != name {
					t.Errorf("decoded as %s", e.Fact.StoredName())
				}
			})
		}
	}
}

// Each fact that a file of the package declares is in the codec's table: without that it could not be appended.
func TestTableOfCodecHasEachFact(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`func \((\w+)\) StoredName\(\) string +\{ return "(.+)" \}`)
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			if _, ok := kinds[m[2]]; !ok && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s declares %s, and codec.go has no line for %s", file, m[1], m[2])
			}
			found++
		}
	}
	if found < len(kinds) {
		t.Errorf("found %d facts in the sources, and the table has %d", found, len(kinds))
	}
}

func is[F Fact](fact Fact) bool {
	_, ok := fact.(F)
	return ok
}

// The stored name of a fact includes the kind of its stream, and each kind has a sealed interface.
func TestTheNameOfEveryFactTellsItsStream(t *testing.T) {
	unions := NewByStream(is[FlagFact], is[ProjectFact], is[TenantFact], is[UserFact], is[InvitationFact],
		is[SegmentFact])
	for _, fact := range examples {
		stream := strings.Replace(fact.StoredName(), ".", "-", 1)
		if belongs, known := unions.Lookup(stream); !known || !belongs(fact) {
			t.Errorf("%T stands in no stream like %s", fact, stream)
		}
	}
	if _, known := unions.Lookup("unknown-1"); known {
		t.Error("a stream of no kind has a value")
	}
}

func TestTenantsFromBeforePlansWereRecordedGetTheirPlan(t *testing.T) {
	for data, want := range map[string]Plan{
		`{"id":"t1","name":"Acme","sandbox":false}`: FreePlan,
		`{"id":"t1","name":"Acme","sandbox":true}`:  SandboxPlan,
	} {
		e, err := Decode(Stored{Name: "tenant.created", Version: 1, Data: []byte(data), Metadata: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Fact.(TenantCreated); got.Plan != want || got.Name != "Acme" {
			t.Errorf("%s became %+v, want plan %s", data, got, want)
		}
	}
}

type unknownFact struct{}

func (unknownFact) StoredName() string { return "unknown.happened" }

func TestEncodeRefusesWhatHasNoEntry(t *testing.T) {
	if _, err := Encode(example(unknownFact{})); err == nil || !strings.Contains(err.Error(), `"unknown.happened"`) {
		t.Errorf("encode: %v, want a refusal that names the fact", err)
	}
}

func TestDecodeRefusesWhatItCannotKnow(t *testing.T) {
	for name, s := range map[string]Stored{
		"unknown name":  {Name: "unknown.happened", Version: 1, Data: []byte(`{}`), Metadata: []byte(`{}`)},
		"newer version": {Name: "flag.deleted", Version: 2, Data: []byte(`{}`), Metadata: []byte(`{}`)},
		"no version":    {Name: "tenant.created", Version: 0, Data: []byte(`{}`), Metadata: []byte(`{}`)},
		"bad data":      {Name: "flag.created", Version: 1, Data: []byte(`[`), Metadata: []byte(`{}`)},
		"bad metadata":  {Name: "flag.deleted", Version: 1, Data: []byte(`{}`), Metadata: []byte(`[]`)},
	} {
		if _, err := Decode(s); err == nil {
			t.Errorf("%s: decoded without an error", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, fact := range examples {
		stored, err := Encode(example(fact))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stored.Name, stored.Version, stored.Data, stored.Metadata)
	}
	f.Fuzz(func(_ *testing.T, name string, version int, data, metadata []byte) {
		_, _ = Decode(Stored{Name: name, Version: version, Data: data, Metadata: metadata})
	})
}

func TestWeightsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Weight(rapid.Int64Range(0, int64(MaxWeight)).Draw(t, "weight"))
		text, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		var back Weight
		if err := json.Unmarshal(text, &back); err != nil || back != w {
			t.Errorf("%d is written as %s and read as %d, %v", w, text, back, err)
		}
	})
	for number, want := range map[string]Weight{"0": 0, "-0": 0, "12.5": 12_500, "0.001": 1, "1e1": 10_000, "10000": MaxWeight, "1.5000": 1_500, "5e-1": 500} {
		if got, err := ParseWeight([]byte(number)); err != nil || got != want {
			t.Errorf("%s is read as %d, %v, want %d", number, got, err, want)
		}
	}
	for _, number := range []string{"-1", "0.0001", "10000.001", "1e9", "1e-9", "1e999", "", ".", "x"} {
		if got, err := ParseWeight([]byte(number)); err == nil {
			t.Errorf("%q is read as %d, want a refusal", number, got)
		}
	}
}
