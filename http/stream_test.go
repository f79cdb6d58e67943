package http_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestStreamReportsChanges(t *testing.T) { nodetest.BothEngines(t, testStreamReportsChanges) }

func testStreamReportsChanges(t *testing.T) {
	nodetest.Cases{
		"it begins with how to come back and where it is": func(t *testing.T, me *nodetest.Client) {
			l := listen(me)
			nodetest.Same(t, "headers",
				[]string{l.header.Get("Content-Type"), l.header.Get("Cache-Control"), l.header.Get("X-Accel-Buffering")},
				[]string{"text/event-stream", "no-store", "no"})
			var retry int
			if _, err := fmt.Sscanf(l.retry, "retry: %d", &retry); err != nil || retry < 1000 || retry > 3000 {
				t.Errorf("it begins with %q", l.retry)
			}
			nodetest.Same(t, "the first event", l.first.text, `{"type":"connected","environment":"production"}`)
			me.CreateFlag("k", nil)
			e := l.next()
			nodetest.Same(
				t,
				"the second event",
				e.text,
				fmt.Sprintf(
					`{"type":"refetchEvaluation","environment":"production","etag":%q,"lastModified":%d,"flags":[{"key":"k","version":1}]}`,
					e.ID, e.Data.LastModified,
				),
			)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			nodetest.Same(t, "the flag in the third",
				strings.HasSuffix(l.next().text, `"flags":[{"key":"k","version":2,"deleted":true}]}`), true)
		},
		"each change is heard, in order": func(t *testing.T, me *nodetest.Client) {
			createHeard(me, "k")
			l := listen(me)
			for version := 2; version < 22; version++ {
				me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"description": fmt.Sprint(version)}).Want(200)
				e := l.next()
				nodetest.Same(t, "what changed", e.flags(), fmt.Sprintf("k %d", version))
				nodetest.Same(t, "type, environment and position", []string{e.Data.Type, e.Data.Environment, e.Data.ETag},
					[]string{"refetchEvaluation", "production", e.ID})
				if age := time.Since(time.Unix(e.Data.LastModified, 0)); age < 0 || age > time.Hour {
					t.Errorf("changed %v ago", age)
				}
			}
		},
		"what is heard can be evaluated": func(_ *testing.T, me *nodetest.Client) {
			createHeard(me, "k")
			l := listen(me)
			var change sync.WaitGroup
			change.Go(func() { me.Call("POST", nodetest.FlagPath("k", "/enable"), nil) })
			l.hears("k 2")
			me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"flagVersion": 2})
			change.Wait()
		},
		"an environment's stream tells of its own changes, and of those of whole flags": func(_ *testing.T, me *nodetest.Client) {
			production, development := listen(me), listen(me, "X-Environment", "development")
			me.CreateFlag("k", map[string]any{"type": "string"})
			enable(me, "k", "development")
			enable(me, "k", "production")
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"inactive"}`).Want(200)
			me.AddVariation("k", `{"name":"v","value":"a"}`)
			me.Call("POST", nodetest.FlagPath("k", "/disable"), nil, "X-Environment", "development").Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			for _, flags := range []string{"k 1", "k 3", "k 4", "k 5", "k 6", "k 8 deleted"} {
				production.hears(flags)
			}
			for _, flags := range []string{"k 1", "k 2", "k 4", "k 5", "k 6", "k 7", "k 8 deleted"} {
				development.hears(flags)
			}
		},
		"a tenant hears nothing of another": func(_ *testing.T, me *nodetest.Client) {
			other := me.NewTenant("other")
			l, there := listen(me), listen(other)
			other.CreateFlag("theirs", nil)
			me.CreateFlag("mine", nil)
			l.hears("mine 1")
			there.hears("theirs 1")
		},
		"200 streams hear of one change": func(t *testing.T, me *nodetest.Client) {
			createHeard(me, "k")
			streams := make([]*listening, 200)
			for i := range streams {
				streams[i] = listen(me)
			}
			began := time.Now()
			enable(me, "k", "production")
			var last time.Time
			for _, l := range streams {
				e := l.next()
				nodetest.Same(t, "what changed", e.flags(), "k 2")
				if e.at.After(last) {
					last = e.at
				}
			}
			t.Logf("the last one heard %v after the change was asked for", last.Sub(began))
		},
	}.Run(t)
}

func TestStreamOfAllEnvironments(t *testing.T) { nodetest.BothEngines(t, testStreamOfAllEnvironments) }

func testStreamOfAllEnvironments(t *testing.T) {
	nodetest.Cases{
		"a stream of all environments tells of each, and in which a flag changed": func(t *testing.T, me *nodetest.Client) {
			everywhere := []string{"X-Environment", "*"}
			l, elsewhere := listen(me, everywhere...), listen(me.NewTenant("other"), everywhere...)
			nodetest.Same(t, "the first event", l.first.text, `{"type":"connected"}`)
			me.CreateFlag("k", nil)
			enable(me, "k", "development")
			enable(me, "k", "production")
			for _, flags := range []string{"k 1", "k 2 in development", "k 3 in production"} {
				l.hears(flags)
			}
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			l.hears("k 4 deleted")
			l.hangUp()

			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"spare"}`).Want(201)
			enableTwice := func(environment string) {
				enable(me, "a", environment)
				me.Call("POST", nodetest.FlagPath("a", "/disable"), nil, "X-Environment", environment).Want(200)
			}
			watching := listen(me, everywhere...)
			me.CreateFlag("a", nil)
			enableTwice("production")
			enableTwice("spare")
			for version := uint64(0); version < 5; { // streams report a change once the lists show it
				for _, flag := range watching.next().Data.Flags {
					version = uint64(flag.Version)
				}
			}
			openStream(me, streamPath, "Last-Event-ID", l.last, "X-Environment", "*").hears("a 1, a 3 in production, a 5 in spare")

			me.NewTenant("third").Call("GET", nodetest.FlagPath("k"), nil, "X-Environment", "*").Refused(404)
			me.Evaluate("a", `{}`, "X-Environment", "*").Refused(404)
			elsewhere.hangUp()
			for e := range elsewhere.events {
				if e.Data != nil {
					t.Errorf("another tenant hears %s", e.text)
				}
			}
		},
	}.Run(t)
}

func TestStreamResumesAfterLastEvent(t *testing.T) {
	nodetest.BothEngines(t, testStreamResumesAfterLastEvent)
}

func testStreamResumesAfterLastEvent(t *testing.T) {
	nodetest.Cases{
		"who comes back hears exactly what they missed": func(t *testing.T, me *nodetest.Client) {
			l := listen(me)
			me.CreateFlag("a", nil)
			l.hears("a 1")
			l.hangUp()
			enable(me, "a", "production")
			me.CreateFlag("b", nil)
			enable(me, "b", "development")
			me.CreateFlag("c", nil)
			me.Call("DELETE", nodetest.FlagPath("b"), nil).Want(204)
			me.NewTenant("other").CreateFlag("theirs", nil)

			resumed := openStream(me, streamPath, "Last-Event-ID", l.last)
			resumed.hears("a 2, b 3 deleted, c 1")
			nodetest.Same(t, "then", resumed.next().Data.Type, "connected")
			enable(me, "c", "production")
			resumed.hears("c 2")
			nodetest.Same(t, "who missed nothing", listen(me, "Last-Event-ID", resumed.last).retry != "", true)
		},
		"after an id that nobody knows all is to be fetched": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			far := uint64(99_999_999_999)
			future := streamIDs(me).ID(events.Position{Commit: far, Prepare: far})
			for _, id := range []string{"x", "1/1", "postgres:1/1", future, listen(me.NewTenant("other")).last} {
				l := openStream(me, streamPath, "Last-Event-ID", id)
				l.hears("")
				nodetest.Same(t, "then", l.next().Data.Type, "connected")
				l.hangUp()
			}
		},
	}.Run(t)
}

// An event names a limited number of flags. Beyond it, it names none, and its reader fetches all.
func TestStreamEventNamesUpTo500Flags(t *testing.T) {
	t.Parallel()
	me := nodetest.New(t).SignUp("me@example.com")
	l := listen(me)
	l.hangUp()
	resume := func() told {
		resumed := openStream(me, streamPath, "Last-Event-ID", l.first.ID)
		defer resumed.hangUp()
		return resumed.next()
	}
	appendFlags(me, 500)
	var e told
	me.Service.Eventually("an event names all flags", func() bool { e = resume(); return len(e.Data.Flags) == 500 })
	me.Call("POST", nodetest.FlagPath(e.Data.Flags[0].Key, "/enable"), nil).Want(200)
	nodetest.Same(t, "the flags once one has changed again", len(resume().Data.Flags), 500)
	me.CreateFlag("one-more", nil)
	e = resume()
	nodetest.Same(t, "the event about more", []any{e.Data.Type, len(e.Data.Flags), strings.Contains(e.text, "flags")},
		[]any{"refetchEvaluation", 0, false})
}

func TestStreamNeedsAccess(t *testing.T) {
	nodetest.Cases{
		"it is refused as any other call": func(_ *testing.T, me *nodetest.Client) {
			nobody := *me
			nobody.Token = ""
			nobody.Call("GET", streamPath, nil).Refused(401)
			me.Call("GET", streamPath+"?token="+me.Token, nil, "Authorization", "").Refused(401)
			me.Call("GET", streamPath, nil, "X-Environment", "none").Refused(404)
			stranger := withToken(me, newAccount(me).token)
			stranger.Tenant = me.Tenant
			stranger.Call("GET", streamPath, nil).Refused(403)
			me.Call("POST", streamPath, nil).Refused(405)
			listen(me.Join("viewer"))
		},
		"HEAD answers its headers alone": func(t *testing.T, me *nodetest.Client) {
			nodetest.Same(t, "its type", me.Call("HEAD", streamPath, nil).Want(200).Header.Get("Content-Type"),
				"text/event-stream")
			me.Call("HEAD", streamPath, nil, "X-Environment", "none").Want(404)
		},
		"a machine needs to evaluate flags, and hears until it is deleted": func(_ *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:evaluate")
			l := listen(machine)
			me.CreateFlag("k", nil)
			l.hears("k 1")
			me.Machine("flags:read", "flags:write", "projects:read").Call("GET", streamPath, nil).Refused(403)
			machine.Call("GET", streamPath, nil, "X-Tenant-ID", me.NewTenant("other").Tenant).Refused(403)
			me.Call("DELETE", "/api/v1/oauth/clients/"+machine.UserID, nil).Want(204)
			l.ends()
		},
	}.Run(t)
}

func TestStreamEndsWithAccess(t *testing.T) {
	nodetest.Cases{
		"it ends when its session does": func(_ *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			first := me.Service.SignUp(email)
			l, other := listen(first), listen(me)
			first.Call("POST", "/api/v1/auth/logout", nil).Want(200)
			l.ends()
			me.CreateFlag("k", nil)
			other.hears("k 1")
		},
		"it ends when the member goes": func(_ *testing.T, me *nodetest.Client) {
			member := me.Join("developer")
			l, other := listen(member), listen(me)
			me.Call("DELETE", usersPath(me, member.UserID), nil).Want(204)
			l.ends()
			me.CreateFlag("k", nil)
			other.hears("k 1")
		},
		"it ends with its environment": func(_ *testing.T, me *nodetest.Client) {
			l, other := listen(me, "X-Environment", "development"), listen(me)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			l.ends()
			me.CreateFlag("k", nil)
			other.hears("k 1")
		},
		"it ends with its environment, even if another takes its name at once": func(t *testing.T, me *nodetest.Client) {
			l := listen(me, "X-Environment", "development")
			store, stream := me.Service.Store(), events.TenantStream(me.Tenant)
			var last events.Revision
			var environment events.EnvironmentRef
			for e, err := range store.Read(t.Context(), stream, 0) {
				if err != nil {
					t.Fatal(err)
				}
				last = e.Revision
				if added, is := e.Fact.(events.EnvironmentAdded); is && added.Environment.Name == "development" {
					environment = added.Environment
				}
			}
			gone := newEvent(me, events.EnvironmentDeleted{Environment: environment})
			environment.ID = uuid.NewString()
			added := newEvent(me, events.EnvironmentAdded{Environment: environment})
			if _, err := store.Append(t.Context(), stream, last, []events.Event{gone, added}); err != nil {
				t.Fatal(err)
			}
			l.ends()
		},
		"it ends with its tenant": func(_ *testing.T, me *nodetest.Client) {
			l := listen(me)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			l.ends()
		},
	}.Run(t)
}
