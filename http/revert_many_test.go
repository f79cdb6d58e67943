package http_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

const revertPath = "/api/v1/flags/revert"

// now returns a time between earlier and later changes, as in a body.
func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// keysOf returns the members of a list of strings.
func keysOf(list any) (keys []string) {
	for _, key := range list.([]any) {
		keys = append(keys, key.(string))
	}
	return keys
}

// appendFlags creates many flags at once and returns their keys in order.
func appendFlags(me *nodetest.Client, n int) (keys []string) {
	me.Service.T.Helper()
	store := me.Service.Store()
	var all errgroup.Group
	all.SetLimit(64)
	for i := range n {
		key := fmt.Sprintf("k%05d", i)
		keys = append(keys, key)
		all.Go(func() error {
			created := events.FlagCreated{
				TenantID:     me.Tenant,
				Key:          key,
				ID:           uuid.NewString(),
				Name:         key,
				Type:         events.BooleanFlag,
				DefaultValue: []byte("false"),
				Salt:         "s",
			}
			return appendFact(me, store, key, 0, created)
		})
	}
	if err := all.Wait(); err != nil {
		me.Service.T.Fatal(err)
	}
	me.Service.Eventually("the flags are listed", func() bool {
		return me.Call("GET", "/api/v1/flags?limit=1", nil).Want(200).Header.Get("X-Total-Count") == strconv.Itoa(n)
	})
	return keys
}

// appendFact appends a fact of a flag as a person's.
func appendFact(me *nodetest.Client, store events.Store, key string, after events.Revision, fact events.Fact) error {
	_, err := store.Append(me.Service.T.Context(), events.FlagStream(me.Tenant, key), after,
		[]events.Event{newEvent(me, fact)})
	return err
}

// newEvent makes a fact an event, as a person's.
func newEvent(me *nodetest.Client, fact events.Fact) events.Event {
	return events.Event{
		ID: uuid.Must(uuid.NewV7()),
		Metadata: events.Metadata{
			Time:  time.Now().UTC().Truncate(time.Millisecond),
			Actor: events.Actor{Kind: events.UserActor, ID: me.UserID},
		},
		Fact: fact,
	}
}

// revertedAs lists a tenant's flags that were reverted under a correlation id, by key.
func revertedAs(me *nodetest.Client, id string) (keys []string) {
	me.Service.T.Helper()
	for page, err := range me.Service.Store().Subscribe(me.Service.T.Context(), events.Position{}) {
		if err != nil {
			me.Service.T.Fatal(err)
		}
		for _, e := range page.Events {
			key, ours := strings.CutPrefix(e.Stream, events.FlagStream(me.Tenant, ""))
			if ours && e.Name == (events.FlagReverted{}).StoredName() && e.CorrelationID == id {
				keys = append(keys, key)
			}
		}
		if page.Live {
			break
		}
	}
	slices.Sort(keys)
	return keys
}

func TestRevertMany(t *testing.T) {
	// shown returns what all flags of a tenant show in two environments, without values unique to each change.
	shown := func(me *nodetest.Client) string {
		me.Service.T.Helper()
		var all strings.Builder
		for _, environment := range []string{"production", "development"} {
			for _, flag := range me.Call("GET", "/api/v1/flags", nil, "X-Environment", environment).Want(200).List() {
				delete(flag, "version")
				delete(flag, "createdAt")
				delete(flag, "updatedAt")
				fmt.Fprintln(&all, flag, string(me.Rules(flag["key"].(string), "X-Environment", environment).Body))
			}
		}
		return all.String()
	}
	revert := func(me *nodetest.Client, body string, headers ...string) map[string]any {
		me.Service.T.Helper()
		answer := me.Call("POST", revertPath, body, headers...).Want(200).Object()
		nodetest.Same(me.Service.T, "the cursor", answer["cursor"], nil)
		return answer
	}
	outcome := func(answer map[string]any) []any {
		failed := []string{}
		for _, f := range answer["failed"].([]any) {
			failed = append(failed, f.(map[string]any)["key"].(string))
		}
		return []any{keysOf(answer["reverted"]), answer["unchanged"], keysOf(answer["createdSince"]), failed}
	}
	change := func(me *nodetest.Client) {
		me.Service.T.Helper()
		me.Call("PATCH", nodetest.FlagPath("a"), `{"name":"N","defaultValue":true}`).Want(200)
		me.Call("POST", nodetest.FlagPath("b", "/disable"), nil).Want(200)
		me.SetRules("b", `{"rules":[{"conditions":[],"serve":{"value":false}}]}`, "X-Environment", "development").Want(200)
		me.Call("DELETE", nodetest.FlagPath("c"), nil).Want(204)
		me.Call("DELETE", nodetest.FlagPath("d"), nil).Want(204)
		me.CreateFlag("d", map[string]any{"type": "string"})
		me.CreateFlag("e", nil)
		me.Call("POST", nodetest.FlagPath("g", "/enable"), nil).Want(200)
		me.Call("POST", nodetest.FlagPath("g", "/disable"), nil).Want(200)
	}
	fill := func(me *nodetest.Client) (at string) {
		me.Service.T.Helper()
		for _, key := range []string{"a", "b", "c", "d"} {
			me.CreateEnabledFlag(key, nil)
		}
		me.CreateFlag("f", nil)
		me.CreateFlag("g", nil)
		return now()
	}
	nodetest.Cases{
		"all flags of then are as they were, and a dry run tells it before": func(t *testing.T, me *nodetest.Client) {
			at := fill(me)
			before := shown(me)
			change(me)
			changed := shown(me)
			want := []any{[]string{"a", "b", "c"}, 2.0, []string{"d", "e"}, []string{"d"}}
			dry := revert(me, fmt.Sprintf(`{"at":%q,"dryRun":true}`, at))
			nodetest.Same(t, "the dry run", outcome(dry), want)
			nodetest.Same(t, "what comes back", dry["restored"], []any{"c"})
			nodetest.Same(t, "the flags after the dry run", shown(me), changed)
			done := revert(me, fmt.Sprintf(`{"at":%q}`, at), "X-Correlation-ID", "the-undoing")
			nodetest.Same(t, "the answer", outcome(done), want)
			nodetest.Same(t, "what came back", done["restored"], []any{"c"})
			nodetest.Same(t, "the correlation id", done["correlationId"], "the-undoing")
			nodetest.Same(t, "what was reverted under it", revertedAs(me, "the-undoing"), []string{"a", "b", "c"})
			me.Call("GET", nodetest.FlagPath("d"), nil).Want(200).Shows(map[string]any{"type": "string"})
			me.Call("DELETE", nodetest.FlagPath("d"), nil).Want(204)
			me.Call("DELETE", nodetest.FlagPath("e"), nil).Want(204)
			nodetest.Same(t, "the answer, once the key is free", outcome(revert(me, fmt.Sprintf(`{"at":%q}`, at))),
				[]any{[]string{"d"}, 5.0, []string(nil), []string{}})
			nodetest.Same(t, "the flags", shown(me), before)
			nodetest.Same(t, "the answer, where nothing is left to do", outcome(revert(me, fmt.Sprintf(`{"at":%q}`, at))),
				[]any{[]string(nil), 6.0, []string(nil), []string{}})
		},
		"one environment, and one project": func(t *testing.T, me *nodetest.Client) {
			at := fill(me)
			change(me)
			answer := revert(me, fmt.Sprintf(`{"at":%q,"environment":"production"}`, at))
			nodetest.Same(t, "the answer", outcome(answer), []any{[]string{"b"}, 3.0, []string{"d", "e"}, []string{"c", "d"}})
			me.Call("GET", nodetest.FlagPath("b"), nil).Want(200).Shows(map[string]any{"enabled": true})
			nodetest.Same(t, "rules elsewhere", len(me.Rules("b", "X-Environment", "development").Object()["rules"].([]any)), 1)
			nodetest.Same(t, "the entry", me.History("b", "?limit=1")[0]["environment"], "production")

			project, _ := me.CreateProject("p")
			me.CreateFlag("in", map[string]any{"projectId": project})
			at = now()
			me.Call("PATCH", nodetest.FlagPath("in"), `{"name":"N"}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("f"), `{"name":"N"}`).Want(200)
			me.CreateFlag("in.since", map[string]any{"projectId": project})
			answer = revert(me, fmt.Sprintf(`{"at":%q,"projectId":%q}`, at, project))
			nodetest.Same(t, "the answer for a project", outcome(answer),
				[]any{[]string{"in"}, 0.0, []string{"in.since"}, []string{}})
		},
		"what cannot come back is told and left, and the rest comes back": func(t *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("p")
			me.CreateFlag("gone", map[string]any{"projectId": project})
			me.CreateFlag("k", nil)
			at := now()
			me.Call("DELETE", nodetest.FlagPath("gone"), nil).Want(204)
			me.Call("DELETE", path, nil).Want(204)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N"}`).Want(200)
			answer := revert(me, fmt.Sprintf(`{"at":%q}`, at))
			nodetest.Same(t, "the answer", outcome(answer), []any{[]string{"k"}, 0.0, []string(nil), []string{"gone"}})
			if detail := answer["failed"].([]any)[0].(map[string]any)["detail"].(string); !strings.Contains(detail, project) {
				t.Error(detail)
			}
			me.Call("GET", nodetest.FlagPath("gone"), nil).Refused(404)
		},
		"a call that is made again with its key goes on, and undoes nothing twice": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			me.CreateFlag("b", nil)
			at := now()
			me.Call("PATCH", nodetest.FlagPath("a"), `{"name":"N"}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("b"), `{"name":"N"}`).Want(200)
			body := fmt.Sprintf(`{"at":%q}`, at)
			first := me.Call("POST", revertPath, body, "Idempotency-Key", "undo").Want(200).Object()
			me.Call("PATCH", nodetest.FlagPath("a"), `{"name":"after"}`).Want(200)
			// This simulates that the first call was interrupted before b, and its response stored.
			me.Call("PATCH", nodetest.FlagPath("b"), `{"name":"after"}`).Want(200)
			forgetAnswers(me.Service)
			again := me.Call("POST", revertPath, body, "Idempotency-Key", "undo").Want(200).Object()
			nodetest.Same(t, "the answer", again, first)
			me.Call("GET", nodetest.FlagPath("a"), nil).Want(200).Shows(map[string]any{"name": "after"})
			nodetest.Same(t, "the entries", len(me.History("a", "?action=reverted")), 1)
		},
		"a call goes on where the one before ended, under its correlation id": func(t *testing.T, me *nodetest.Client) {
			keys := appendFlags(me, 503)
			answer := me.Call("POST", revertPath, `{"at":"2001-01-01T00:00:00Z"}`).Want(200).Object()
			created := keysOf(answer["createdSince"])
			nodetest.Same(t, "the first call's", len(created), 500)
			cursor, id := answer["cursor"].(string), answer["correlationId"]
			me.Call("POST", revertPath, fmt.Sprintf(`{"at":"2001-01-02T00:00:00Z","cursor":%q}`, cursor)).Refused(422, "cursor")
			me.Call("POST", revertPath, fmt.Sprintf(`{"at":"2001-01-01T00:00:00Z","dryRun":true,"cursor":%q}`, cursor)).
				Refused(422, "cursor")
			me.NewTenant("other").
				Call("POST", revertPath, fmt.Sprintf(`{"at":"2001-01-01T00:00:00Z","cursor":%q}`, cursor)).
				Refused(422, "cursor")
			answer = me.Call("POST", revertPath, fmt.Sprintf(`{"at":"2001-01-01T00:00:00Z","cursor":%q}`, cursor)).
				Want(200).
				Object()
			nodetest.Same(t, "the second call's correlation id and cursor", []any{answer["correlationId"], answer["cursor"]},
				[]any{id, nil})
			created = append(created, keysOf(answer["createdSince"])...)
			nodetest.Same(t, "all", slices.Equal(created, keys), true)
		},
		"it waits for the processors as other work of the tenant does": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			at := now()
			me.Call("PATCH", nodetest.FlagPath("a"), `{"name":"N"}`).Want(200)
			free := occupy(me.Service.Node.API.Queues.CPU, me.UserID)
			defer free()
			me.Call("POST", revertPath, fmt.Sprintf(`{"at":%q}`, at)).Refused(429)
			free()
			nodetest.Same(t, "the answer", outcome(revert(me, fmt.Sprintf(`{"at":%q}`, at))),
				[]any{[]string{"a"}, 0.0, []string(nil), []string{}})
		},
		"who may, and what must be sent": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			refused := func(body string, status int, fields ...string) {
				me.Call("POST", revertPath, body).Refused(status, fields...)
			}
			refused(`{}`, 422, "at")
			refused(`{"at":"yesterday","projectId":"","environment":"","cursor":"x"}`, 422, "at", "projectId", "environment",
				"cursor")
			refused(`{"at":"2999-01-01T00:00:00Z"}`, 422, "at")
			refused(fmt.Sprintf(`{"at":%q,"projectId":"none"}`, now()), 422, "projectId")
			refused(fmt.Sprintf(`{"at":%q,"environment":"none"}`, now()), 404)
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"staging"}`).Want(201)
			at := now()
			refused(`{"at":"2001-01-01T00:00:00Z","environment":"staging"}`, 409)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/staging", nil).Want(204)
			refused(fmt.Sprintf(`{"at":%q,"environment":"staging"}`, at), 409)
			me.Join("viewer").Call("POST", revertPath, `{"at":"2001-01-01T00:00:00Z"}`).Refused(403)
			me.Join("developer").Call("POST", revertPath, `{"at":"2001-01-01T00:00:00Z"}`).Want(200)
		},
	}.Run(t)
}

// A call ends when the tenant's daily quota is used up, and its cursor continues the next day.
func TestRevertManyEndsAtDailyLimit(t *testing.T) {
	t.Parallel()
	const limit = 8 * (64 << 10)
	clock := withinADay()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		FlagBytes:   map[events.Plan]int{events.FreePlan: 64 << 10, events.SandboxPlan: 64 << 10},
		Now:         clock.now,
	}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	keys := []string{"a", "b", "c", "d", "e", "f"}
	for _, key := range keys {
		me.CreateFlag(key, nil)
	}
	body := map[string]any{"at": now()}
	for _, key := range keys {
		me.Call("PATCH", nodetest.FlagPath(key), `{"name":"N"}`).Want(200)
	}
	s.Node.API.Quotas.Wrote(me.Tenant, limit-1-s.Node.API.Quotas.WrittenToday(me.Tenant))
	answer := me.Call("POST", revertPath, body).Want(200).Object()
	nodetest.Same(t, "what is brought back", answer["reverted"], []string{"a", "b", "c", "d"})
	body["cursor"] = answer["cursor"]
	me.Call("POST", revertPath, body).Refused(429)
	me.Call("GET", nodetest.FlagPath("e"), nil).Want(200).Shows(map[string]any{"name": "N"})
	clock.add(24 * time.Hour)
	me.Token = account{email: "me@example.com"}.signIn(me).token
	answer = me.Call("POST", revertPath, body).Want(200).Object()
	nodetest.Same(t, "what is brought back the day after", answer["reverted"], []string{"e", "f"})
	nodetest.Same(t, "its cursor", answer["cursor"], nil)
}
