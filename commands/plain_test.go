package commands

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/events"
	"flagledger/events/state"
)

// oneOfEach holds a command of each type, with values that JSON could lose: null, empty lists and absent lists.
func oneOfEach() []any {
	ref := FlagRef{TenantID: "t", Key: "k", ProjectID: "p", IfVersions: []events.Revision{}}
	tenant, user, now := TenantRef{"t"}, UserRef{"u"}, time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.UTC)
	serve := &NewServe{Value: raw("null")}
	rollout := &NewServe{Rollout: []events.Share{{VariationID: "v", Weight: 1}}, BucketBy: new("company.id")}
	fallthroughs := SetFallthrough{FlagRef: ref, Environment: production, Serve: rollout}
	return []any{
		CreateEvaluationKey{
			TenantRef: tenant, ID: "k", Name: "Shop", Kind: events.BrowserKey, Environment: "production", Origins: []string{},
			ExpiresAt: now, Random: "r", SigningID: "s", Now: now,
		},
		ChangeEvaluationKey{EvaluationKeyRef{tenant, "k"}, new(""), &[]string{}, &time.Time{}, now},
		RotateEvaluationKey{EvaluationKeyRef{tenant, "k"}, "r", "s", true, now},
		RemoveEvaluationKey{EvaluationKeyRef{tenant, "k"}},
		CreateFlag{
			TenantID:   "t",
			Key:        "k",
			Name:       new(""),
			FlagCount:  7,
			Owner:      "u",
			Variations: []NewVariation{{ID: "v", Value: raw("null"), Weight: 1}},
		},
		CreateFlag{TenantID: "t", Key: "k", DefaultValue: raw("null"), ProjectMissing: true, OwnerMissing: true, OffServes: new("")},
		UpdateFlag{
			FlagRef:      ref,
			DefaultValue: raw("null"),
			Tags:         &[]string{},
			Status:       new(events.ArchivedFlag),
			Permanent:    new(false),
			Owner:        new(""),
			Links:        &[]events.Link{},
			OffServes:    new("code"),
			OwnerMissing: true,
			EnabledSent:  true,
		},
		UpdateFlag{FlagRef: FlagRef{TenantID: "t", Key: "k"}},
		SwitchFlag{FlagRef: ref, Environment: production, On: true},
		DeleteFlag{FlagRef: ref, Dependents: []Dependent{{"l", "production", events.Prerequisite{FlagKey: "k", Off: true}}}},
		SetPrerequisites{
			FlagRef: ref, Environment: production,
			Prerequisites: []events.Prerequisite{{FlagKey: "l", Serves: []events.ServedValue{{Value: raw("null")}}}},
			Required:      RequiredFlags{"l": {Unusable: "is gone", Type: events.JSONFlag, Variations: []string{"v"}}},
		},
		RevertFlag{
			FlagRef:        ref,
			At:             now,
			Environments:   []events.EnvironmentRef{production},
			Only:           &production,
			ProjectMissing: true,
			FlagCount:      7,
			To: state.Flag{
				FlagCreated: events.FlagCreated{
					Key:          "k",
					DefaultValue: raw("null"),
					Variations:   []events.Variation{{ID: "v", Value: raw("1.50"), Weight: 1500}},
				},
				Exists:    true,
				Enabled:   state.EnvironmentSet{"e"},
				Rules:     map[string][]events.Rule{"e": {{ID: "r", Serve: events.Serve{Value: raw("null")}}}},
				UpdatedAt: now,
				Version:   7,
			},
		},
		CreateSegment{
			TenantID: "t", Key: "k", ID: "s", Name: new(""), Rules: []NewRule{}, Unusable: SegmentErrors{"a": "is gone"},
			SegmentCount: 7,
		},
		UpdateSegment{SegmentRef{"t", "k", []events.Revision{}}, new(""), nil, &[]string{}},
		SetSegmentRules{SegmentRef: SegmentRef{TenantID: "t", Key: "k"}, Rules: []NewRule{{ID: new("r")}}},
		ChangeMembers{SegmentRef{"t", "k", nil}, events.Excluded, []string{"u"}, nil, "salt"},
		ForgetMembers{SegmentRef{"t", "k", nil}, "salt"},
		DeleteSegment{SegmentRef{"t", "k", nil}, []string{"the flag f"}},
		RevertSegment{
			SegmentRef: SegmentRef{TenantID: "t", Key: "k"}, At: now, SegmentCount: 7,
			To: state.Segment{
				SegmentCreated: events.SegmentCreated{TenantID: "t", Key: "k"}, Exists: true, Version: 7,
				Included: state.NewMembers([]string{"a", "b"}),
				Uses:     []state.SegmentUse{{Key: "c", Since: now}},
			},
		},
		LeaveProject{FlagRef: ref},
		AddVariation{FlagRef: ref, Variation: NewVariation{ID: "v", Name: "n", Value: raw("1.50"), Weight: 1500}},
		UpdateVariation{FlagRef: ref, ID: "v", Name: new("n"), Value: raw("null"), Weight: new(events.Weight(1500))},
		UpdateVariation{FlagRef: ref, ID: "v"},
		RemoveVariation{FlagRef: ref, ID: "v", Environments: []events.EnvironmentRef{production}},
		SetRules{FlagRef: ref, Environment: production},
		SetRules{FlagRef: ref, Environment: production, Fallthrough: &fallthroughs, Rules: []NewRule{
			{ID: new("r"), Conditions: []events.Condition{}, Serve: serve},
			{
				NewID:      "r",
				Salt:       "s",
				Conditions: []events.Condition{{Attribute: "a", Op: events.In, Values: []json.RawMessage{raw("1")}}},
			},
		}},
		fallthroughs,
		SetFallthrough{FlagRef: ref, Environment: production, Unset: true},
		CreateProject{ID: "p", TenantID: "t", Name: "n", Color: new("#000000")},
		UpdateProject{ProjectRef: ProjectRef{"t", "p"}, Name: new("n")},
		DeleteProject{ProjectRef: ProjectRef{"t", "p"}, FlagCount: 1},
		CreateTenant{
			ID:            "t",
			Name:          "n",
			SandboxEndsAt: now,
			Creator:       "u",
			Created:       CreatedBefore{Tenants: 3, Today: 4, At: now},
			Environments:  []events.EnvironmentRef{production},
		},
		ResetDemoPeople{
			TenantRef:    tenant,
			Environments: []events.EnvironmentRef{production},
			DemoReset:    DemoReset{OnlyMissing: true},
		},
		ResetDemoProject{TenantID: "t", Name: "n", DemoReset: DemoReset{OnlyMissing: true}},
		CleanUpFlag{FlagRef: ref, Asked: time.Now()},
		CleanUpProject{ProjectRef: ProjectRef{"t", "p"}, Asked: time.Now()},
		ResetDemoFlag{
			TenantID:     "t",
			Key:          "k",
			ID:           "f",
			Environments: []events.EnvironmentRef{production},
			DemoReset:    DemoReset{OnlyMissing: true},
		},
		DeleteEndedSandbox{TenantRef: tenant, EndsAt: now, Now: now},
		UpdateTenant{TenantRef: tenant, Name: new("n")},
		DeleteTenant{TenantRef: tenant},
		SetFlagRules{TenantRef: tenant, Naming: &events.FlagNaming{Pattern: ".", Example: "a"}, RequireReason: []string{}},
		AddEnvironment{TenantRef: tenant, Environment: production},
		DeleteEnvironment{TenantRef: tenant, Name: "production"},
		ArrangeEnvironments{TenantRef: tenant, Environments: []EnvironmentSetting{{Name: "production", Color: "#e03131"}}},
		InviteMember{TenantRef: tenant, ID: "p", Role: events.ViewerRole, Person: "u"},
		JoinTenant{TenantRef: tenant, ID: "p", UserID: "u"},
		ChangeRole{TenantRef: tenant, UserID: "u", Role: events.ViewerRole, ShutOut: []string{"v"}},
		RemoveMember{TenantRef: tenant, UserID: "u", ShutOut: []string{"v"}},
		LeaveTenant{RemoveMember{TenantRef: tenant, UserID: "u", ShutOut: []string{"v"}}},
		CreateClient{TenantRef: tenant, ID: "c", Name: "n", Scopes: []string{"flags:read"}, SecretHash: []byte{1, 2}},
		RotateSecret{ClientRef: ClientRef{tenant, "c"}, SecretHash: []byte{1, 2}, Now: now},
		DeleteClient{ClientRef: ClientRef{tenant, "c"}},
		SetSubscription{
			TenantRef:    tenant,
			Subscription: events.Subscription{ID: "s", Plan: events.StandardPlan, Status: events.Active, PeriodEnd: now},
			Now:          now,
		},
		SetPlan{TenantRef: tenant, Plan: events.StandardPlan},
		NoteCustomer{TenantRef: tenant, CustomerID: "cus", Replaces: "other"},
		RegisterUser{ID: "u", Provider: "password"},
		EndSession{UserID: "u", SessionID: "s", Until: now},
		EndSessions{UserID: "u", Before: now, Except: "s"},
		ChangePlatformRole{UserRef: user, Role: events.SuperUser, Listed: true},
		DeactivateUser{UserRef: user},
		ReactivateUser{UserRef: user},
		EraseUser{UserRef: user, Known: true},
		CreateInvitation{ID: "i", Role: events.PlatformAdmin, Listed: true, Legacy: true, Now: now, AlreadyPending: true},
		ResendInvitation{InvitationRef{"i", now}},
		RevokeInvitation{InvitationRef{"i", now}},
		AcceptInvitation{InvitationRef{"i", now}, "u"},
		GrantInvited{UserRef: user, Role: events.PlatformAdmin, Listed: true, AcceptedAt: now},
	}
}

// Commands survive a round trip through JSON.
func TestCommandsArePlainData(t *testing.T) {
	missing := commandTypes(t)
	for _, cmd := range oneOfEach() {
		kind := reflect.TypeOf(cmd)
		delete(missing, kind.Name())
		t.Run(kind.Name(), func(t *testing.T) {
			stored, err := json.Marshal(cmd)
			if err != nil {
				t.Fatal(err)
			}
			read := reflect.New(kind)
			if err := json.Unmarshal(stored, read.Interface()); err != nil {
				t.Fatalf("%s cannot be read: %v", stored, err)
			}
			if diff := cmp.Diff(cmd, read.Elem().Interface()); diff != "" {
				t.Errorf("read from %s it differs (-stored +read):\n%s", stored, diff)
			}
			checkPlain(t, kind, kind.Name())
		})
	}
	for name := range missing {
		t.Errorf("oneOfEach has no %s: add one", name)
	}
}

// checkPlain checks that a type holds neither functions nor fields that JSON leaves out.
func checkPlain(t *testing.T, kind reflect.Type, place string) {
	t.Helper()
	switch kind.Kind() {
	case reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
		t.Errorf("%s is of the type %s", place, kind)
	case reflect.Pointer, reflect.Slice:
		checkPlain(t, kind.Elem(), place)
	case reflect.Struct:
		if kind == reflect.TypeFor[time.Time]() || kind == reflect.TypeFor[state.Members]() {
			return
		}
		for field := range kind.Fields() {
			if !field.IsExported() {
				t.Errorf("%s.%s is not exported", place, field.Name)
			}
			checkPlain(t, field.Type, place+"."+field.Name)
		}
	default:
	}
}

// commandTypes lists the names of the types with a Decide method.
func commandTypes(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Decide" && f.Recv != nil {
				if receiver, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
					names[receiver.Name] = true
				}
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("no command was found")
	}
	return names
}

// A retry after an update of the program finds the facts of the first attempt. Before you rename a command's type, add
// its old name to renamed.
func TestStoredNamesOfCommandsNeverChange(t *testing.T) {
	want := strings.Fields(`
		AcceptInvitation AddEnvironment AddMember AddVariation ArrangeEnvironments ChangeEvaluationKey ChangeMembers ChangePlatformRole ChangeRole CleanUpFlag CleanUpProject CreateClient CreateEvaluationKey CreateFlag
		CreateInvitation CreateProject CreateSegment CreateTenant DeactivateUser DeleteClient DeleteEndedSandbox DeleteEnvironment DeleteFlag DeleteProject DeleteSegment DeleteTenant
		EndSession EndSessions EraseUser ForgetMembers GrantInvited JoinTenant LeaveProject LeaveTenant NoteCustomer ReactivateUser RegisterUser RemoveEvaluationKey RemoveMember
		RemoveVariation ResendInvitation ResetDemoFlag ResetDemoPeople ResetDemoProject RevertFlag RevertSegment RevokeInvitation RotateEvaluationKey RotateSecret SetFallthrough SetFlagRules SetPlan SetPrerequisites SetRules SetSegmentRules
		SetSubscription SwitchFlag UpdateFlag UpdateProject UpdateSegment UpdateTenant UpdateVariation`)
	for i := range want {
		want[i] = "commands." + want[i]
	}
	var got []string
	for _, cmd := range oneOfEach() {
		got = append(got, StoredName(cmd))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("the names of commands (-want +got):\n%s", diff)
	}
}
