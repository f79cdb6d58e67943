package main

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/migrations/pgtest"
	"flagledger/queries"
)

// noNames are the names in a database without read models: ids replace them.
func noNames(t *testing.T) *queries.Queries {
	t.Helper()
	url := pgtest.URL(t)
	if err := node.Migrate(t.Context(), url, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
	trail, err := node.OpenTrailReader(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trail.Close)
	return trail.Queries
}

// printed returns the output of a replay.
func printed(t *testing.T, store events.Store, names *queries.Queries, cmd replayCommand) (string, error) {
	t.Helper()
	at, err := cmd.moment(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = newReplay(cmd, store, names, &out, nodetest.Log(t)).print(t.Context(), at)
	return out.String(), err
}

// history writes facts to a store that were recorded a second apart.
type history struct {
	t     *testing.T
	store events.Store
	at    time.Time
	last  map[string]events.Revision
}

func newHistory(t *testing.T, store events.Store) *history {
	return &history{t, store, time.Date(2026, 3, 14, 15, 0, 0, 123000, time.UTC), map[string]events.Revision{}}
}

func (h *history) write(stream, reason string, fact events.Fact) {
	h.t.Helper()
	e := events.Event{
		ID:       uuid.New(),
		Metadata: events.Metadata{Time: h.at, Actor: events.Actor{Kind: events.UserActor, ID: "ada"}, Reason: reason},
		Fact:     fact,
	}
	stored, err := events.Encode(e)
	if err != nil {
		h.t.Fatal(err)
	}
	if copied, ok := fact.(events.Stored); ok {
		stored = copied
	}
	stored.At = h.at
	e.Fact = stored
	if _, err := h.store.Append(h.t.Context(), stream, h.last[stream], []events.Event{e}); err != nil {
		h.t.Fatal(err)
	}
	h.last[stream]++
	h.at = h.at.Add(time.Second)
}

// fill writes the life of a tenant, with facts of a newer release, text with control characters, and facts of another
// tenant.
func (h *history) fill() {
	tenant, flag := events.TenantStream("t"), events.FlagStream("t", "k")
	production := events.EnvironmentRef{ID: "e1", Name: "production"}
	rule := events.Rule{
		ID:         "r1",
		Name:       "Pro",
		Salt:       "s",
		Conditions: []events.Condition{{Attribute: "plan", Op: events.In, Values: []json.RawMessage{[]byte(`"pro"`)}}},
		Serve:      events.Serve{VariationID: "v1"},
	}
	changed := rule
	changed.Serve = events.Serve{Value: []byte(`false`)}
	h.write(tenant, "", events.TenantCreated{ID: "t", Name: "Acme", Plan: events.FreePlan})
	h.write(tenant, "", events.EnvironmentAdded{Environment: production})
	h.write(events.FlagStream("other", "k"), "",
		events.FlagCreated{TenantID: "other", Key: "k", Type: events.BooleanFlag, DefaultValue: []byte(`false`)})
	h.write(
		flag,
		"",
		events.FlagCreated{
			TenantID:     "t",
			Key:          "k",
			ID:           "f",
			Name:         "K",
			Type:         events.BooleanFlag,
			DefaultValue: []byte(`false`),
			Salt:         "SALT",
		},
	)
	h.write(flag, "launch\x1b[2J day\u202e", events.FlagEnabled{Environment: production})
	h.write(flag, "",
		events.VariationAdded{Variation: events.Variation{ID: "v1", Name: "on\u009b1A", Value: []byte(`true`), Weight: 1500}})
	h.write(flag, "", events.ChangeRules(production, nil, []events.Rule{rule}))
	h.write(flag, "", events.ChangeRules(production, []events.Rule{rule}, []events.Rule{changed}))
	h.write(flag, "", events.Stored{Name: "flag.frozen", Version: 1, Data: []byte(`{"until":9007199254740993}`)})
	h.write(events.ProjectStream("p"), "",
		events.Stored{Name: "project.created", Version: 9, Data: []byte(`{"tenantId":"t","name":"Shop"}`)})
	h.write(events.ProjectStream("p"), "",
		events.ProjectUpdated{Name: &events.Change[string]{From: "Shop", To: "Web shop"}})
	h.write(events.ProjectStream("q"), "", events.ProjectCreated{ID: "q", TenantID: "other", Name: "theirs"})
	h.write(
		tenant,
		"",
		events.OAuthClientCreated{
			ClientID:   "c",
			Name:       "CI",
			Scopes:     []events.Scope{events.FlagsRead},
			SecretHash: []byte("hash of the secret"),
		},
	)
	h.write(flag, "", events.FlagDisabled{Environment: production})
}

const flagReplay = `2026-03-14T15:00:03.000123Z  ada  flag k v1  created  defaultValue false, name "K", type "boolean"
      defaultValue
        + false
      name
        + "K"
      type
        + "boolean"
2026-03-14T15:00:04.000123Z  ada  flag k v2  enabled  in production  “launch\x1b[2J day\u202e”
      enabled: false → true
2026-03-14T15:00:05.000123Z  ada  flag k v3  variation added  variation "on\u009b1A" (true, weight 1.5) added
      variation "on\u009b1A"
        + name "on\u009b1A"
        + value true
        + weight 1.5
2026-03-14T15:00:06.000123Z  ada  flag k v4  rules changed  in production  rule "Pro" added
      rules.order: [] → ["Pro"]
      rule "Pro"
        + name "Pro"
        + if plan in "pro"
        + → on\u009b1A
2026-03-14T15:00:07.000123Z  ada  flag k v5  rules changed  in production  rule "Pro" changed
      rule "Pro"
        - → on\u009b1A
          name "Pro"
          if plan in "pro"
        + → false
2026-03-14T15:00:08.000123Z  ada  flag-t.k   flag.frozen  unknown here: unknown fact "flag.frozen"
2026-03-14T15:00:13.000123Z  ada  flag k v7  disabled     in production
      enabled: true → false
`

const tenantReplay = `2026-03-14T15:00:00.000123Z  ada  tenant                  created          isSandbox false, name "Acme", plan "free"
2026-03-14T15:00:01.000123Z  ada  environment production  added            name "production"
2026-03-14T15:00:03.000123Z  ada  flag k v1               created          defaultValue false, name "K", type "boolean"
2026-03-14T15:00:04.000123Z  ada  flag k v2               enabled          in production  “launch\x1b[2J day\u202e”
2026-03-14T15:00:05.000123Z  ada  flag k v3               variation added  variation "on\u009b1A" (true, weight 1.5) added
2026-03-14T15:00:06.000123Z  ada  flag k v4               rules changed    in production  rule "Pro" added
2026-03-14T15:00:07.000123Z  ada  flag k v5               rules changed    in production  rule "Pro" changed
2026-03-14T15:00:08.000123Z  ada  flag-t.k                flag.frozen      unknown here: unknown fact "flag.frozen"
2026-03-14T15:00:09.000123Z  ada  project-p               project.created  unknown here: project.created has version 9; this program knows 1 to 1
2026-03-14T15:00:10.000123Z  ada  project Web shop v2     updated          name "Shop" → "Web shop"
2026-03-14T15:00:12.000123Z  ada  client CI               created          name "CI", scopes ["flags:read"]
2026-03-14T15:00:13.000123Z  ada  flag k v7               disabled         in production
`

// smallPages is a store whose subscriptions have a fact a page.
type smallPages struct{ events.Store }

func (s smallPages) Subscribe(ctx context.Context, after events.Position) iter.Seq2[events.Page, error] {
	return func(yield func(events.Page, error) bool) {
		for page, err := range s.Store.Subscribe(ctx, after) {
			for i, e := range page.Events {
				one := events.Page{Events: []events.Recorded{e}, Next: page.Next, Live: page.Live && i == len(page.Events)-1}
				if !yield(one, nil) {
					return
				}
			}
			if (err != nil || len(page.Events) == 0) && !yield(page, err) {
				return
			}
		}
	}
}

func TestAReplayIsReadByPeople(t *testing.T) {
	t.Parallel()
	names := noNames(t)
	for name, open := range map[string]func(*testing.T) events.Store{
		"Postgres":     emptyPostgres,
		"EventStoreDB": emptyEventStore,
		"small pages":  func(t *testing.T) events.Store { return smallPages{emptyPostgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			newHistory(t, store).fill()
			for _, c := range []struct {
				cmd  replayCommand
				want string
			}{
				{replayCommand{Tenant: "t", Flag: new("k"), Diff: true}, flagReplay},
				{replayCommand{Tenant: "t"}, tenantReplay},
			} {
				got, err := printed(t, store, names, c.cmd)
				if err != nil || got != c.want {
					t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
				}
			}
		})
	}
}

const segmentReplay = `2026-03-14T15:00:00.000123Z  ada  segment beta v1  created  name "Beta"
      name
        + "Beta"
2026-03-14T15:00:01.000123Z  ada  segment beta v2  rules changed  rule "staff" added
      rules.order: [] → ["staff"]
      rule "staff"
        + name "staff"
        + if plan in "pro"
2026-03-14T15:00:02.000123Z  ada  segment beta v3  members added  included ["ada","eve"]
      included
        + ["ada","eve"]
2026-03-14T15:00:03.000123Z  ada  segment beta v4  members removed  included ["eve"] → null  “left”
      included
        - ["eve"]
2026-03-14T15:00:04.000123Z  ada  segment beta v5  rules changed  rule "staff" removed
      rules.order: ["staff"] → []
      rule "staff"
        - name "staff"
        - if plan in "pro"
2026-03-14T15:00:05.000123Z  ada  segment beta v6  deleted  -
`

// segment writes the life of a segment.
func (h *history) segment() {
	stream := events.SegmentStream("t", "beta")
	rule := events.Rule{ID: "r1", Name: "staff",
		Conditions: []events.Condition{{Attribute: "plan", Op: events.In, Values: []json.RawMessage{[]byte(`"pro"`)}}}}
	h.write(stream, "", events.SegmentCreated{TenantID: "t", Key: "beta", ID: "s", Name: "Beta"})
	h.write(stream, "", events.ChangeSegmentRules(nil, []events.Rule{rule}))
	h.write(stream, "", events.SegmentMembersAdded{List: events.Included, Members: []string{"ada", "eve"}})
	h.write(stream, "left", events.SegmentMembersRemoved{List: events.Included, Members: []string{"eve"}})
	h.write(stream, "", events.ChangeSegmentRules([]events.Rule{rule}, nil))
	h.write(stream, "", events.SegmentDeleted{})
}

func TestReplayOfASegment(t *testing.T) {
	t.Parallel()
	names, store := noNames(t), emptyPostgres(t)
	newHistory(t, store).segment()
	got, err := printed(t, store, names, replayCommand{Tenant: "t", Segment: new("beta"), Diff: true})
	if err != nil || got != segmentReplay {
		t.Errorf("%v\n%s\nwant\n%s", err, got, segmentReplay)
	}
	for at, want := range map[string]string{
		"3": `{"version":3,"timestamp":"2026-03-14T15:00:02.000123Z","segment":{"id":"s","key":"beta","name":"Beta",` +
			`"description":"","tags":[],"private":false,"version":3,"rules":[{"id":"r1","name":"staff","conditions":[{"attribute":"plan",` +
			`"op":"in","values":["pro"],"negate":false}]}],"counts":{"included":2,"excluded":0},` +
			`"createdAt":"2026-03-14T15:00:00.000123Z","updatedAt":"2026-03-14T15:00:02.000123Z"},"included":["ada","eve"]}`,
		"2026-03-14T15:00:06Z": `{"version":6,"timestamp":"2026-03-14T15:00:05.000123Z","segment":null}`,
	} {
		got, err := printed(t, store, names, replayCommand{Tenant: "t", Segment: new("beta"), At: &at, JSON: true})
		if err != nil || got != want+"\n" {
			t.Errorf("at %s: %v\n%s\nwant\n%s", at, err, got, want)
		}
	}
	for want, cmd := range map[string]replayCommand{
		"the tenant t never had a segment x":            {Tenant: "t", Segment: new("x")},
		"the tenant t never had a segment beta by then": {Tenant: "t", Segment: new("beta"), At: new("2026-03-14T15:00:00Z")},
		"there is no version 7: the last is 6":          {Tenant: "t", Segment: new("beta"), At: new("7")},
	} {
		text, err := printed(t, store, names, cmd)
		if err == nil || err.Error() != want || text != "" {
			t.Errorf("%v\n%s\nwant %s", err, text, want)
		}
	}
}

func TestActorNames(t *testing.T) {
	t.Parallel()
	names := map[string]queries.Name{
		"u":    {Text: "Ada", Listed: true},
		"gone": {Erased: true},
		"c":    {Text: "CI", Listed: true},
		"i":    {},
	}
	for want, by := range map[string]events.Actor{
		"Ada": {Kind: events.UserActor, ID: "u"}, "erased user": {Kind: events.UserActor, ID: "gone"}, "CI (client)": {Kind: events.ClientActor, ID: "c"},
		"flagledger (system)": {Kind: events.SystemActor, ID: "flagledger"}, "the invited person": {Kind: events.InvitedActor, ID: "i"},
	} {
		if name := actorName(by, names); name != want {
			t.Errorf("%v is called %q, want %q", by, name, want)
		}
	}
}

func TestAReplayInJSON(t *testing.T) {
	t.Parallel()
	names, store := noNames(t), emptyPostgres(t)
	newHistory(t, store).fill()
	replayed := func(cmd replayCommand) (lines []map[string]any) {
		t.Helper()
		text, err := printed(t, store, names, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(text, "\x1b\u009b\u202e") || strings.Contains(strings.ToLower(text), "secret\":") ||
			strings.Contains(text, "secretHash") {
			t.Errorf("it has control characters or secrets:\n%s", text)
		}
		for line := range strings.Lines(text) {
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, object)
		}
		return lines
	}
	flag := replayed(replayCommand{Tenant: "t", Flag: new("k"), JSON: true})
	if len(flag) != 7 || flag[1]["version"] != 2.0 || flag[1]["fact"] != "flag.enabled" ||
		flag[1]["recorded"] != "2026-03-14T15:00:04.000123Z" ||
		flag[1]["actorName"] != "ada" ||
		flag[1]["metadata"].(map[string]any)["reason"] != "launch\x1b[2J day\u202e" ||
		flag[0]["changes"] != nil {
		t.Errorf("the flag is %v", flag)
	}
	if unknown := flag[5]; unknown["data"].(map[string]any)["until"] != 9007199254740993.0 ||
		!strings.Contains(unknown["unknown"].(string), "flag.frozen") {
		t.Errorf("an unknown fact is %v", unknown)
	}
	changes := replayed(replayCommand{Tenant: "t", Flag: new("k"), Diff: true, JSON: true})[1]["changes"]
	nodetest.Same(t, "the changes", changes, map[string]any{"enabled": map[string]any{"from": false, "to": true}})
	if tenant := replayed(
		replayCommand{Tenant: "t", JSON: true},
	); len(tenant) != 12 || tenant[10]["fact"] != "tenant.oauth_client_created" ||
		tenant[10]["data"].(map[string]any)["name"] != "CI" {
		t.Errorf("the tenant is %v", tenant)
	}
	project := replayed(replayCommand{Tenant: "other", Project: new("q"), At: new("1"), JSON: true})
	at := "2026-03-14T15:00:11.000123Z"
	nodetest.Same(t, "a project", project, []any{map[string]any{"version": 1, "timestamp": at, "project": map[string]any{
		"id": "q", "name": "theirs", "description": "", "color": "", "createdAt": at, "updatedAt": at,
	}}})

	for want, cmd := range map[string]replayCommand{
		"the tenant t never had a flag x":            {Tenant: "t", Flag: new("x")},
		"the tenant t never had a project q":         {Tenant: "t", Project: new("q")},
		"there are no facts of a tenant x":           {Tenant: "x"},
		"the tenant t never had a flag k by then":    {Tenant: "t", Flag: new("k"), At: new("2026-03-14T15:00:03Z")},
		"there is no version 8: the last is 7":       {Tenant: "t", Flag: new("k"), At: new("8")},
		"the tenant t never had a project q by then": {Tenant: "t", Project: new("q"), At: new("1")},
	} {
		text, err := printed(t, store, names, cmd)
		if err == nil || err.Error() != want || text != "" {
			t.Errorf("%v\n%s\nwant %s", err, text, want)
		}
	}
}

// Any text is printed on one line without control characters; JSON keeps its meaning.
func TestTextOfFactsDrivesNoTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(r, "bytes")) + rapid.String().
			Draw(r, "text") +
			rapid.SampledFrom([]string{"\x1b[2J", "\r\n", "\u009b", "\u202e", "\U000e0001", "\x9b"}).
				Draw(r, "control")
		var out bytes.Buffer
		table := terminal.NewTable(&out)
		table.Row(text)
		if err := table.Flush(); err != nil {
			r.Fatal(err)
		}
		printsOnly(r, strings.TrimSuffix(out.String(), "\n"))
		before, err := events.Marshal(text)
		if err != nil {
			r.Fatal(err)
		}
		after := terminal.PrintableJSON(before)
		printsOnly(r, string(after))
		var x, y string
		if json.Unmarshal(before, &x) != nil || json.Unmarshal(after, &y) != nil || x != y {
			r.Fatalf("%s became %s", before, after)
		}
	})
	if raw := terminal.PrintableJSON([]byte("\"\x9b\"")); string(raw) != `"\ufffd"` {
		t.Errorf("a byte that is no character is %s", raw)
	}
}

func printsOnly(r *rapid.T, text string) {
	for _, c := range text {
		if !strconv.IsPrint(c) {
			r.Fatalf("%q has %q", text, c)
		}
	}
}

// Beside a server, people have their current names, erased people have none, and a state is what the API shows.
func TestReplaysBesideAServer(t *testing.T) {
	t.Parallel()
	me := nodetest.New(t).SignUp(nodetest.Address())
	gone := me.Join(events.AdminRole)
	me.CreateFlag("k", nil)
	gone.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
	me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", map[string]any{"name": "qa"})
	invite := func(email string) (id string) {
		return me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["userId"].(string)
	}
	joined := nodetest.Address()
	pending, withdrawn := invite(joined), invite(nodetest.Address())
	me.Service.SignUp(joined)
	me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/users/"+withdrawn, nil).Want(204)
	client, secret := me.OAuthClient("CI", "flags:read", "flags:write")
	const segment = "/api/v1/segments/beta"
	me.Call("POST", "/api/v1/segments", `{"key":"beta","rules":[{"conditions":[{"attribute":"plan","op":"in","values":["pro"]}]}]}`)
	me.Call("POST", segment+"/members", `{"list":"excluded","add":["eve"]}`).Want(200)
	p, settings := nodetest.Build(t), []string{"FLAGLEDGER_DATABASE_URL=" + me.Service.DatabaseURL}
	run(p, settings, "erase-user", gone.UserID).succeeded()

	replay := func(arguments ...string) string {
		t.Helper()
		return run(p, settings, append([]string{"replay", "--tenant", me.Tenant}, arguments...)...).succeeded().stdout
	}
	me.Service.Eventually("they are erased for the read models",
		func() bool { return strings.Contains(replay(), "member erased user") })
	invitations := replay()
	if strings.Contains(invitations, pending) || strings.Contains(invitations, withdrawn) ||
		strings.Count(invitations, "member "+joined) != 2 ||
		strings.Count(invitations, "member withdrawn invitation") != 2 {
		t.Errorf("of invitations it prints\n%s", invitations)
	}
	flag := strings.Split(replay("--flag=k"), "\n")
	if len(flag) != 3 || !strings.Contains(flag[0], "  "+me.Email+"  flag k v1  created  ") ||
		!strings.Contains(flag[1], "  erased user") ||
		strings.Contains(flag[1], gone.Email) {
		t.Errorf("the flag is\n%s", strings.Join(flag, "\n"))
	}
	all := replay("--diff", "--json")
	for _, word := range []string{secret, "secretHash", gone.Email} {
		if strings.Contains(all, word) {
			t.Errorf("a replay tells of %s", word)
		}
	}
	if !strings.Contains(all, client) || !strings.Contains(all, `"actorName":"erased user"`) {
		t.Errorf("the tenant is\n%s", all)
	}
	for _, version := range []string{"1", "2"} {
		var got any
		if err := json.Unmarshal([]byte(replay("--flag=k", "--at="+version)), &got); err != nil {
			t.Fatal(err)
		}
		nodetest.Same(t, "version "+version, got,
			me.Call("GET", nodetest.FlagPath("k", "/versions/"+version), nil).Want(200).JSON())
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(replay("--segment=beta", "--at=3")), &got); err != nil {
		t.Fatal(err)
	}
	want := me.Call("GET", segment+"/versions/3", nil).Want(200).Object()
	want["excluded"] = me.Call("GET", segment+"/members?list=excluded", nil).Want(200).JSON()
	nodetest.Same(t, "the segment", got, want)
}
