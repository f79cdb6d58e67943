package commands

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
)

var production = events.EnvironmentRef{ID: "e1", Name: "production"}

func created(change ...func(*events.FlagCreated)) events.FlagCreated {
	f := events.FlagCreated{
		TenantID:     "t",
		Key:          "k",
		ID:           "f",
		Name:         "k",
		Type:         events.NumberFlag,
		DefaultValue: raw("0"),
		Salt:         "s",
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func withVariation(f *events.FlagCreated) {
	f.Variations = []events.Variation{{ID: "v1", Name: "low", Value: raw("1"), Weight: 1000}}
}

func creating(change func(*CreateFlag)) CreateFlag {
	c := CreateFlag{TenantID: "t", Key: "k", ID: "f", Type: events.NumberFlag, Salt: "s"}
	change(&c)
	return c
}

var theFlag = FlagRef{TenantID: "t", Key: "k"}

func TestCreateFlag(t *testing.T) {
	unchanged := func(*CreateFlag) {}
	t.Run("with nothing but key and type", func(t *testing.T) {
		when(t, nil, creating(unchanged)).then(created())
	})
	t.Run("with all fields", func(t *testing.T) {
		when(t, nil, creating(func(c *CreateFlag) {
			c.Name, c.Description, c.Tags, c.ProjectID = new("Checkout"), "why", []string{"a", "b", "a"}, "p"
			c.Permanent, c.Owner, c.Links = true, "u", []events.Link{{Title: "t", URL: "https://example.com"}}
			c.DefaultValue = raw(" 1.50 ")
			c.OffServes = new("code")
			c.Variations = []NewVariation{{ID: "v1", Name: "low", Value: raw("1"), Weight: 500}}
		})).then(created(func(f *events.FlagCreated) {
			f.Name, f.Description, f.Tags, f.ProjectID, f.DefaultValue = "Checkout", "why", []string{"a", "b"}, "p", raw("1.50")
			f.Permanent, f.Owner, f.Links = true, "u", []events.Link{{Title: "t", URL: "https://example.com"}}
			f.OffServes = events.OffServesCode
			f.Variations = []events.Variation{{ID: "v1", Name: "low", Value: raw("1"), Weight: 500}}
		}))
	})
	t.Run("whose key was deleted", func(t *testing.T) {
		when(t, []events.Fact{created(), events.FlagDeleted{}}, creating(unchanged)).then(created())
	})
	t.Run("whose key is taken", func(t *testing.T) {
		when(t, []events.Fact{created()}, creating(unchanged)).refused(Conflict)
	})
	t.Run("of a tenant that has many", func(t *testing.T) {
		when(t, nil, creating(func(c *CreateFlag) { c.FlagCount = 19_999 })).then(created())
		when(t, nil, creating(func(c *CreateFlag) { c.FlagCount = 20_000 })).refused(Conflict)
	})
	t.Run("with the most of everything", func(t *testing.T) {
		longest := strings.Repeat("é", 200)
		decided := when(t, nil, creating(func(c *CreateFlag) {
			c.Name, c.Description = &longest, strings.Repeat("é", 2000)
			c.Tags, c.Variations = append(numbered(50), numbered(50)...), numberedVariations(100)
		}))
		if decided.err != nil || len(decided.facts) != 1 {
			t.Errorf("got %v and %v", decided.facts, decided.err)
		}
	})
	for name, c := range map[string]struct {
		change func(*CreateFlag)
		fields []string
	}{
		"no type":        {func(c *CreateFlag) { c.Type = "" }, []string{"type"}},
		"empty name":     {func(c *CreateFlag) { c.Name = new("") }, []string{"name"}},
		"long name":      {func(c *CreateFlag) { c.Name = new(strings.Repeat("é", 201)) }, []string{"name"}},
		"NUL":            {func(c *CreateFlag) { c.Description = "a\x00" }, []string{"description"}},
		"wrong value":    {func(c *CreateFlag) { c.DefaultValue = raw(`"1"`) }, []string{"defaultValue"}},
		"huge number":    {func(c *CreateFlag) { c.DefaultValue = raw(`1e999`) }, []string{"defaultValue"}},
		"no project":     {func(c *CreateFlag) { c.ProjectID, c.ProjectMissing = "p", true }, []string{"projectId"}},
		"no member":      {func(c *CreateFlag) { c.Owner, c.OwnerMissing = "u", true }, []string{"owner"}},
		"21 links":       {func(c *CreateFlag) { c.Links = make([]events.Link, 21) }, append(linkFields(20), "links")},
		"no such value":  {func(c *CreateFlag) { c.OffServes = new("") }, []string{"offServes"}},
		"empty tag":      {func(c *CreateFlag) { c.Tags = []string{"a", ""} }, []string{"tags[1]"}},
		"51 tags":        {func(c *CreateFlag) { c.Tags = numbered(51) }, []string{"tags"}},
		"a long tag":     {func(c *CreateFlag) { c.Tags = []string{strings.Repeat("é", 51)} }, []string{"tags[0]"}},
		"101 variations": {func(c *CreateFlag) { c.Variations = numberedVariations(101) }, []string{"flag_variations"}},
		"two variations of one name": {func(c *CreateFlag) {
			c.Variations = []NewVariation{{ID: "1", Name: "a", Value: raw("1")}, {ID: "2", Name: "a", Value: raw("2")}}
		}, []string{"flag_variations[1].name"}},
		"all at once": {func(c *CreateFlag) {
			c.Key, c.Name, c.DefaultValue, c.Tags = "a b", new(""), raw("true"), []string{""}
			c.Variations = []NewVariation{{Name: "", Value: raw("{}"), Weight: -1}}
		}, []string{"key", "name", "defaultValue", "tags[0]", "flag_variations[0].name", "flag_variations[0].value", "flag_variations[0].weight"}},
	} {
		t.Run("with "+name, func(t *testing.T) { when(t, nil, creating(c.change)).refused(Invalid, c.fields...) })
	}
}

// linkFields names the fields of empty links.
func linkFields(n int) (fields []string) {
	for _, i := range numbered(n) {
		fields = append(fields, "links["+i+"].title", "links["+i+"].url")
	}
	return fields
}

func numbered(n int) (list []string) {
	for i := range n {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

func numberedVariations(n int) (list []NewVariation) {
	for _, name := range numbered(n) {
		list = append(list, NewVariation{ID: name, Name: name, Value: raw("1")})
	}
	return list
}

func TestKeysOfFlags(t *testing.T) {
	longest := strings.Repeat("k", 128)
	for _, key := range []string{"a", "0", "A.b_c-9", "Projects", "projects2", "a..b", "streams", longest} {
		when(t, nil, creating(func(c *CreateFlag) { c.Key = key })).
			then(created(func(f *events.FlagCreated) { f.Key, f.Name = key, key }))
	}
	for _, key := range []string{
		"", " ", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "a%", longest + "k", "projects", "evaluate", "stream", "revert",
	} {
		when(t, nil, creating(func(c *CreateFlag) { c.Key = key })).refused(Invalid, "key")
	}
}

func TestValuesAreOfTheFlagsType(t *testing.T) {
	for kind, values := range map[events.FlagType]struct{ good, bad []string }{
		events.BooleanFlag: {[]string{"true", "false"}, []string{`"true"`, "1", "null", "{}", "[]"}},
		events.StringFlag:  {[]string{`""`, `"null"`}, []string{"true", "1", "null", "{}", "[]"}},
		events.NumberFlag:  {[]string{"0", "-1", "-1.5e3", "1e2", "9007199254740993", "0.10"}, []string{"true", `"1"`, "null", "{}", "[]", "1e999"}},
		events.JSONFlag:    {[]string{"{}", "[]", "null", "1", "true", `"x"`}, []string{`{"a":[1e999999999]}`}},
	} {
		for _, value := range values.good {
			wrong := FieldErrors{}
			if checkValue(wrong, "value", kind, raw(value)); len(wrong) > 0 {
				t.Errorf("%s is no %s: %v", value, kind, wrong)
			}
		}
		for _, value := range values.bad {
			wrong := FieldErrors{}
			if checkValue(wrong, "value", kind, raw(value)); len(wrong) == 0 {
				t.Errorf("%s is a %s", value, kind)
			}
		}
	}
}

func TestUpdateFlag(t *testing.T) {
	given := []events.Fact{created(func(f *events.FlagCreated) { f.Tags = []string{"a"} })}
	t.Run("the owner", func(t *testing.T) {
		owned := created(func(f *events.FlagCreated) { f.Owner = "u" })
		to := func(from, to string) events.FlagUpdated {
			return events.FlagUpdated{Owner: &events.Change[string]{From: from, To: to}}
		}
		when(t, given, UpdateFlag{FlagRef: theFlag, Owner: new("u")}).then(to("", "u"))
		when(t, []events.Fact{owned}, UpdateFlag{FlagRef: theFlag, Owner: new("")}).then(to("u", ""))
		when(t, []events.Fact{owned}, UpdateFlag{FlagRef: theFlag, Owner: new("u")}).then()
		when(t, given, UpdateFlag{FlagRef: theFlag, Owner: new("v"), OwnerMissing: true}).refused(Invalid, "owner")
		when(t, given, UpdateFlag{FlagRef: theFlag, MoveTo: new("q"), ProjectMissing: true}).refused(Invalid, "projectId")
		moved := events.FlagUpdated{ProjectID: &events.Change[string]{To: "q"}}
		when(t, given, UpdateFlag{FlagRef: theFlag, MoveTo: new("q")}).then(moved)
		when(t, append(given, moved), UpdateFlag{FlagRef: theFlag, MoveTo: new("")}).
			then(events.FlagUpdated{ProjectID: &events.Change[string]{From: "q"}})
	})
	t.Run("the links", func(t *testing.T) {
		links := []events.Link{{Title: "t", URL: "https://example.com"}}
		linked := created(func(f *events.FlagCreated) { f.Links = links })
		when(t, given, UpdateFlag{FlagRef: theFlag, Links: &links}).
			then(events.FlagUpdated{Links: &events.Change[[]events.Link]{To: links}})
		when(t, []events.Fact{linked}, UpdateFlag{FlagRef: theFlag, Links: &links}).then()
		when(t, []events.Fact{linked}, UpdateFlag{FlagRef: theFlag, Links: &[]events.Link{}}).
			then(events.FlagUpdated{Links: &events.Change[[]events.Link]{From: links, To: []events.Link{}}})
		wrong := []events.Link{{Title: "t", URL: "ftp://example.com"}}
		when(t, given, UpdateFlag{FlagRef: theFlag, Links: &wrong}).refused(Invalid, "links[0].url")
	})
	t.Run("what it serves while it is off", func(t *testing.T) {
		set := func(text string) UpdateFlag { return UpdateFlag{FlagRef: theFlag, OffServes: &text} }
		coded := created(func(f *events.FlagCreated) { f.OffServes = events.OffServesCode })
		when(t, given, set("code")).then(events.FlagUpdated{OffServes: &events.Change[events.OffServes]{To: "code"}})
		when(t, given, set("value")).then()
		when(t, []events.Fact{coded}, set("value")).
			then(events.FlagUpdated{OffServes: &events.Change[events.OffServes]{From: "code"}})
		when(t, []events.Fact{coded}, UpdateFlag{FlagRef: theFlag, Name: new("Other")}).
			then(events.FlagUpdated{Name: &events.Change[string]{From: "k", To: "Other"}})
		when(t, given, set("off")).refused(Invalid, "offServes")
	})
	t.Run("what changes is told with what was", func(t *testing.T) {
		when(t, given, UpdateFlag{
			FlagRef:      theFlag,
			Name:         new("n"),
			Description:  new("d"),
			DefaultValue: raw(" 7 "),
			Tags:         &[]string{"b", "b"},
			Status:       new(events.ArchivedFlag),
			Permanent:    new(true),
		}).then(
			events.FlagUpdated{
				Name:        &events.Change[string]{From: "k", To: "n"},
				Description: &events.Change[string]{To: "d"},
				DefaultValue: &events.Change[json.RawMessage]{
					From: raw("0"),
					To:   raw("7"),
				},
				Tags:      &events.Change[[]string]{From: []string{"a"}, To: []string{"b"}},
				Permanent: &events.Change[bool]{From: false, To: true},
			},
			events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag},
		)
	})
	t.Run("what is so already is no change", func(t *testing.T) {
		when(t, given, UpdateFlag{
			FlagRef:      theFlag,
			Name:         new("k"),
			Description:  new(""),
			DefaultValue: raw("0"),
			Tags:         &[]string{"a"},
			Status:       new(events.ActiveFlag),
			Permanent:    new(false),
		}).then()
	})
	t.Run("any status follows any", func(t *testing.T) {
		archived := append(given, events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag})
		when(t, archived, UpdateFlag{FlagRef: theFlag, Status: new(events.InactiveFlag)}).
			then(events.FlagStatusChanged{From: events.ArchivedFlag, To: events.InactiveFlag})
	})
	t.Run("all that is wrong is named", func(t *testing.T) {
		when(
			t,
			given,
			UpdateFlag{
				FlagRef:      theFlag,
				Name:         new(""),
				DefaultValue: raw("true"),
				Tags:         &[]string{""},
				Status:       new(events.FlagStatus("x")),
			},
		).
			refused(Invalid, "name", "defaultValue", "tags[0]", "status")
	})
	t.Run("tags are a set of 50 at most", func(t *testing.T) {
		when(t, given, UpdateFlag{FlagRef: theFlag, Tags: &[]string{"b", "b", ""}}).refused(Invalid, "tags[2]")
		when(t, given, UpdateFlag{FlagRef: theFlag, Tags: new(numbered(51))}).refused(Invalid, "tags")
	})
	t.Run("of no flag", func(t *testing.T) { when(t, nil, UpdateFlag{FlagRef: theFlag}).refused(NotFound) })
	t.Run("of a deleted flag", func(t *testing.T) {
		when(t, append(given, events.FlagDeleted{}), UpdateFlag{FlagRef: theFlag}).refused(NotFound)
	})
}

func TestAChangeMayExpectAVersion(t *testing.T) {
	given := []events.Fact{created(), events.FlagEnabled{Environment: production}}
	at := func(version events.Revision) FlagRef {
		return FlagRef{TenantID: "t", Key: "k", IfVersions: []events.Revision{9, version}}
	}
	for name, cmd := range map[string]func(FlagRef) Command[state.Flag]{
		"update": func(r FlagRef) Command[state.Flag] { return UpdateFlag{FlagRef: r, Name: new("n")} },
		"switch": func(r FlagRef) Command[state.Flag] { return SwitchFlag{FlagRef: r, Environment: production} },
		"delete": func(r FlagRef) Command[state.Flag] { return DeleteFlag{FlagRef: r} },
		"add variation": func(r FlagRef) Command[state.Flag] {
			return AddVariation{FlagRef: r, Variation: NewVariation{ID: "v", Name: "n", Value: raw("1")}}
		},
		"update variation": func(r FlagRef) Command[state.Flag] { return UpdateVariation{FlagRef: r, ID: "v"} },
		"remove variation": func(r FlagRef) Command[state.Flag] { return RemoveVariation{FlagRef: r, ID: "v"} },
		"set rules": func(r FlagRef) Command[state.Flag] {
			return SetRules{FlagRef: r, Environment: production, Rules: []NewRule{}}
		},
		"set fallthrough": func(r FlagRef) Command[state.Flag] {
			return SetFallthrough{FlagRef: r, Environment: production, Unset: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			when(t, given, cmd(at(1))).refused(PreconditionFailed)
			if err := when(t, given, cmd(at(2))).err; KindOf(err) == PreconditionFailed {
				t.Errorf("refused at the version that it expects: %v", err)
			}
		})
	}
}

func TestAChangeMayExpectAProject(t *testing.T) {
	inProject := created(func(f *events.FlagCreated) { f.ProjectID = "p" })
	for name, c := range map[string]struct {
		given []events.Fact
		found bool
	}{
		"of the project":                {[]events.Fact{inProject}, true},
		"of another":                    {[]events.Fact{created(func(f *events.FlagCreated) { f.ProjectID = "q" })}, false},
		"of none":                       {[]events.Fact{created()}, false},
		"of the project in a past life": {[]events.Fact{inProject, events.FlagDeleted{}, created()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ref := FlagRef{TenantID: "t", Key: "k", ProjectID: "p"}
			update := when(t, c.given, UpdateFlag{FlagRef: ref, Name: new("n")})
			if c.found {
				update.then(events.FlagUpdated{Name: &events.Change[string]{From: "k", To: "n"}})
				return
			}
			update.refused(NotFound)
			ref.IfVersions = []events.Revision{}
			when(t, c.given, DeleteFlag{FlagRef: ref}).refused(NotFound)
		})
	}
}

func TestSwitchFlag(t *testing.T) {
	on, off := SwitchFlag{
		FlagRef:     theFlag,
		Environment: production,
		On:          true,
	}, SwitchFlag{
		FlagRef:     theFlag,
		Environment: production,
	}
	enabled := []events.Fact{created(), events.FlagEnabled{Environment: production}}
	when(t, []events.Fact{created()}, on).then(events.FlagEnabled{Environment: production})
	when(t, enabled, on).then()
	when(t, enabled, off).then(events.FlagDisabled{Environment: production})
	when(t, []events.Fact{created()}, off).then()
	when(t, nil, on).refused(NotFound)
	t.Run("environments are apart", func(t *testing.T) {
		recreated := events.EnvironmentRef{ID: "e2", Name: "production"}
		when(
			t,
			enabled,
			SwitchFlag{FlagRef: theFlag, Environment: recreated, On: true},
		).then(events.FlagEnabled{Environment: recreated})
	})
}

func TestDeleteFlag(t *testing.T) {
	when(t, []events.Fact{created()}, DeleteFlag{FlagRef: theFlag}).then(events.FlagDeleted{})
	when(t, []events.Fact{created(), events.FlagDeleted{}}, DeleteFlag{FlagRef: theFlag}).refused(NotFound)
}

func TestLeaveProject(t *testing.T) {
	inProject := func(f *events.FlagCreated) { f.ProjectID = "p" }
	leave := LeaveProject{FlagRef{TenantID: theFlag.TenantID, Key: theFlag.Key, ProjectID: "p"}}
	left := events.FlagUpdated{ProjectID: &events.Change[string]{From: "p"}}
	when(t, []events.Fact{created(inProject)}, leave).then(left)
	when(t, []events.Fact{created(inProject), left}, leave).then()
	when(t, []events.Fact{created()}, leave).then()
	when(t, []events.Fact{created(inProject), events.FlagDeleted{}}, leave).then()
	when(t, nil, leave).then()
}

func TestAFlagBeginsANewLifeClean(t *testing.T) {
	f := stateOf[state.Flag]([]events.Fact{
		created(withVariation),
		events.FlagEnabled{Environment: production},
		events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag},
		ruled(storedRule("r1")),
		events.FallthroughChanged{Environment: production, To: &events.Serve{VariationID: "v1"}},
		events.FlagDeleted{},
		created(),
	})
	if !f.Exists || f.Status != events.ActiveFlag ||
		len(f.Enabled)+len(f.Variations)+len(f.Rules)+len(f.Fallthrough) > 0 ||
		f.Version != 7 {
		t.Errorf("the second life is %+v", f)
	}
}

func TestVariations(t *testing.T) {
	given := []events.Fact{created(withVariation)}
	low := created(withVariation).Variations[0]
	high := NewVariation{ID: "v2", Name: "high", Value: raw("2"), Description: "more", Weight: 500}
	t.Run("add", func(t *testing.T) {
		when(t, given, AddVariation{theFlag, high}).
			then(events.VariationAdded{Variation: events.Variation{ID: "v2", Name: "high", Value: raw("2"), Description: "more", Weight: 500}})
		when(t, given,
			AddVariation{theFlag, NewVariation{ID: "v2", Name: "low", Value: raw(`"x"`), Weight: events.MaxWeight + 1}}).
			refused(Invalid, "name", "value", "weight")
		when(t, given, AddVariation{theFlag, NewVariation{ID: "v2", Name: "n"}}).refused(Invalid, "value")
	})
	t.Run("a flag has at most a hundred", func(t *testing.T) {
		full := given
		for range maxVariations - 1 {
			full = append(full, events.VariationAdded{Variation: events.Variation{ID: NewID(), Name: NewID(), Value: raw("1")}})
		}
		when(t, full, AddVariation{theFlag, high}).refused(Conflict)
	})
	t.Run("update", func(t *testing.T) {
		when(
			t,
			given,
			UpdateVariation{
				FlagRef:     theFlag,
				ID:          "v1",
				Name:        new("lower"),
				Value:       raw("0.5"),
				Description: new("d"),
				Weight:      new(events.Weight(1)),
			},
		).
			then(events.VariationUpdated{
				ID:          "v1",
				Name:        &events.Change[string]{From: "low", To: "lower"},
				Value:       &events.Change[json.RawMessage]{From: raw("1"), To: raw("0.5")},
				Description: &events.Change[string]{To: "d"},
				Weight:      &events.Change[events.Weight]{From: 1000, To: 1},
			})
		when(
			t,
			given,
			UpdateVariation{FlagRef: theFlag, ID: "v1", Name: new("low"), Value: raw(" 1 "), Weight: new(events.Weight(1000))},
		).then()
		when(t, given, UpdateVariation{FlagRef: theFlag, ID: "v9"}).refused(NotFound)
	})
	t.Run("names are unique in the flag", func(t *testing.T) {
		another := func(name string) AddVariation {
			return AddVariation{theFlag, NewVariation{ID: "v3", Name: name, Value: raw("3")}}
		}
		added := func(name string) events.VariationAdded {
			return events.VariationAdded{Variation: another(name).Variation.variation()}
		}
		two := append(slices.Clone(given), events.VariationAdded{Variation: high.variation()})
		when(t, two, UpdateVariation{FlagRef: theFlag, ID: "v2", Name: new("low")}).refused(Invalid, "name")
		when(t, two, another("high")).refused(Invalid, "name")
		when(t, two, another("High")).then(added("High"))
		when(t, append(two, events.VariationRemoved{Variation: high.variation()}), another("high")).then(added("high"))
	})
	t.Run("remove", func(t *testing.T) {
		when(t, given, RemoveVariation{FlagRef: theFlag, ID: "v1"}).then(events.VariationRemoved{Variation: low})
		when(
			t,
			append(given, events.VariationRemoved{Variation: low}),
			RemoveVariation{FlagRef: theFlag, ID: "v1"},
		).refused(NotFound)
	})
}

func TestFlagRules(t *testing.T) {
	tenant := []events.Fact{
		events.TenantCreated{ID: "t", Name: "Acme"}, events.EnvironmentAdded{Environment: production},
	}
	ref := TenantRef{"t"}
	rules := events.FlagRules{
		Naming:        &events.FlagNaming{Pattern: "a|bc", Example: "bc", Hint: "short"},
		RequireReason: []events.EnvironmentRef{production}, RequireOwner: true,
	}
	set := SetFlagRules{
		TenantRef: ref, Naming: rules.Naming, RequireReason: []string{"production", "production"}, RequireOwner: true,
	}
	changed := events.FlagRulesChanged{To: rules}
	when(t, tenant, set).then(changed)
	when(t, append(tenant, changed), set).then()
	when(t, append(tenant, changed), SetFlagRules{TenantRef: ref}).then(events.FlagRulesChanged{From: rules})
	when(t, append(tenant, changed, events.EnvironmentDeleted{Environment: production}), set).
		refused(Invalid, "requireReason[0]", "requireReason[1]")
	when(t, nil, set).refused(NotFound)
	for _, n := range []events.FlagNaming{{Pattern: "(", Example: "a"}, {Pattern: strings.Repeat("a", 201), Example: "a"}} {
		wrong := FieldErrors{}
		if checkNaming(wrong, &n); wrong["naming.pattern"] == "" {
			t.Errorf("the pattern %.10s is accepted: %v", n.Pattern, wrong)
		}
	}

	of := func(key, owner string) CreateFlag {
		return creating(func(c *CreateFlag) { c.Key, c.Owner, c.Rules = key, owner, rules })
	}
	when(t, nil, of("bc", "u")).then(created(func(f *events.FlagCreated) { f.Key, f.Name, f.Owner = "bc", "bc", "u" }))
	when(t, nil, of("abc", "")).refused(Invalid, "key", "owner")
}
