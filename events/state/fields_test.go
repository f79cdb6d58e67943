package state_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

func fold[S any, P state.State[S]](facts ...events.Fact) any {
	var s S
	for _, fact := range facts {
		P(&s).Apply(recorded(fact))
	}
	return s
}

// Each field of a fact that creates or updates something changes the state and the description.
func TestStateAndDescriptionHaveEachField(t *testing.T) {
	foldFlag, foldProject := fold[state.Flag], fold[state.Project]
	foldSegment := fold[state.Segment]
	foldTenant, foldInvitation := fold[state.Tenant], fold[state.Invitation]
	variation := events.FlagCreated{Variations: []events.Variation{{ID: "v1"}}}
	tested := map[string]bool{}
	for _, c := range []struct {
		before      events.Fact // nil for a fact that begins the stream
		fact        events.Fact
		fold        func(...events.Fact) any
		unfolded    []string
		undescribed []string // ids are not changes, and secrets stay hidden
	}{
		{nil, events.FlagCreated{}, foldFlag, nil, []string{"TenantID", "Key", "ID", "Salt"}},
		{events.FlagCreated{}, events.FlagUpdated{}, foldFlag, nil, nil},
		{variation, events.VariationUpdated{ID: "v1"}, foldFlag, []string{"ID"}, []string{"ID"}},
		{nil, events.SegmentCreated{}, foldSegment, nil, []string{"TenantID", "Key", "ID", "SaltID"}},
		{events.SegmentCreated{}, events.SegmentUpdated{}, foldSegment, nil, nil},
		{nil, events.ProjectCreated{}, foldProject, nil, []string{"ID", "TenantID"}},
		{events.ProjectCreated{}, events.ProjectUpdated{}, foldProject, nil, nil},
		{nil, events.TenantCreated{}, foldTenant, nil, []string{"ID"}},
		{events.TenantCreated{}, events.TenantUpdated{}, foldTenant, []string{"Contact"}, nil}, // the directory has it
		{events.TenantCreated{}, events.OAuthClientCreated{}, foldTenant, []string{"SecretHash"}, []string{"SecretHash"}},
		{events.TenantCreated{}, events.EvaluationKeyAdded{}, foldTenant, nil, []string{"KeyID", "KeyMaterial"}},
		{nil, events.InvitationCreated{}, foldInvitation, nil, []string{"ID"}},
	} {
		tested[c.fact.StoredName()] = true
		facts := []events.Fact{c.before, c.fact}
		if c.before == nil {
			facts = facts[1:]
		}
		folded, described := c.fold(facts...), describe(t, c.fact)
		for i := range reflect.TypeOf(c.fact).NumField() {
			field := reflect.TypeOf(c.fact).Field(i)
			changed := reflect.New(reflect.TypeOf(c.fact)).Elem()
			changed.Set(reflect.ValueOf(c.fact))
			fill(changed.Field(i))
			fact := changed.Interface().(events.Fact)
			facts[len(facts)-1] = fact
			if !slices.Contains(c.unfolded, field.Name) && reflect.DeepEqual(c.fold(facts...), folded) {
				t.Errorf("%T.%s does not change the state", c.fact, field.Name)
			}
			if !slices.Contains(c.undescribed, field.Name) && reflect.DeepEqual(describe(t, fact), described) {
				t.Errorf("%T.%s does not change the description", c.fact, field.Name)
			}
		}
	}
	files, err := filepath.Glob("../testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		name, _, _ := strings.Cut(filepath.Base(path), ".v")
		if (strings.HasSuffix(name, "created") || strings.HasSuffix(name, "updated")) && !tested[name] {
			t.Errorf("no row here has %s", name)
		}
	}
}

func describe(t *testing.T, fact events.Fact) state.Description {
	d, err := state.Describe(recorded(fact))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fill sets a value to one that is not empty. Of a change it sets the new side.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`"x"`))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if to := v.FieldByName("To"); to.IsValid() {
			fill(to)
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Int64:
		v.SetInt(1)
	default:
		panic("a new kind of field: " + v.Type().String())
	}
}
