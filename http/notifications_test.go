package http_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/http/quota"
)

const inboxPath = "/api/v1/notifications"

// send sends a notification in the client's tenant.
func send(c *nodetest.Client, to, title string) string {
	c.Service.T.Helper()
	body := map[string]any{"userId": to, "tenantId": c.Tenant, "title": title, "type": "test"}
	return c.Call("POST", inboxPath+"/send", body).Want(201).Object()["id"].(string)
}

// inboxOf lists a person's notifications with a query, and returns the next page's path.
func inboxOf(c *nodetest.Client, query string) (list []map[string]any, next string) {
	c.Service.T.Helper()
	return inboxAt(c, inboxPath+query)
}

func inboxAt(c *nodetest.Client, path string) (list []map[string]any, next string) {
	c.Service.T.Helper()
	a := c.Call("GET", path, nil).Want(200)
	if link := a.Header.Get("Link"); link != "" {
		next, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	return asMaps(a.Object()["notifications"]), next
}

// noticed waits until the service has sent a person a notification, and returns it.
func noticed(c *nodetest.Client, kind string) (found map[string]any) {
	c.Service.T.Helper()
	c.Service.Eventually("there is a notification of "+kind, func() bool {
		list, _ := inboxOf(c, "?limit=100")
		found = entry(list, "type", kind)
		return found != nil
	})
	return found
}

// welcomed creates a new member and empties their inbox.
func welcomed(me *nodetest.Client) *nodetest.Client {
	me.Service.T.Helper()
	dev := me.Join("developer").Stay()
	noticed(dev, "tenant.member_added")
	dev.Call("DELETE", inboxPath+"/clear", nil).Want(200)
	return dev
}

func titles(list []map[string]any) []any { return nodetest.Column(list, "title") }

func TestNotifications(t *testing.T) {
	nodetest.Cases{
		"one is sent, listed, read and cleared": func(t *testing.T, me *nodetest.Client) {
			dev := welcomed(me)
			a := me.Call("POST", inboxPath+"/send", map[string]any{
				"userId":      dev.UserID,
				"tenantId":    me.Tenant,
				"title":       "Hello",
				"body":        "You",
				"type":        "greeting",
				"icon":        "i",
				"actionType":  "open",
				"referenceId": "r",
				"data":        map[string]string{"a": "b"},
			}).Want(201)
			sent := a.Object()
			nodetest.Members(t, "a notification", sent, "id", "type", "title", "body", "icon", "actionType", "referenceId",
				"data", "read", "readAt", "createdAt")
			a.Shows(map[string]any{
				"type":        "greeting",
				"title":       "Hello",
				"body":        "You",
				"icon":        "i",
				"actionType":  "open",
				"referenceId": "r",
				"data":        map[string]string{"a": "b"},
				"read":        false,
				"readAt":      nil,
			})
			nodetest.Same(t, "where it is", a.Header.Get("Location"), inboxPath+"/"+sent["id"].(string))
			page := dev.Call("GET", inboxPath, nil).Want(200)
			nodetest.Members(t, "the list", page.JSON(), "notifications", "totalCount", "unreadCount")
			page.Shows(map[string]any{"notifications": []any{sent}, "totalCount": 1, "unreadCount": 1})
			dev.Call("GET", a.Header.Get("Location"), nil).Want(200).Shows(sent)
			read := dev.Call("PATCH", a.Header.Get("Location")+"/read", nil).
				Want(200).
				Shows(map[string]any{"read": true}).
				Object()
			second := dev.Call("PATCH", a.Header.Get("Location")+"/read", nil).Want(200).Object()
			nodetest.Same(t, "read once more", second, read)
			nodetest.Same(t, "what is not read", dev.Call("GET", inboxPath+"?unreadOnly=true", nil).Want(200).Object(),
				map[string]any{"notifications": []any{}, "totalCount": 0, "unreadCount": 0})
			send(me, dev.UserID, "second")
			nodetest.Same(t, "all are marked", dev.Call("PATCH", inboxPath+"/read-all", nil).Want(200).Object(),
				map[string]any{"success": true, "markedCount": 1})
			nodetest.Same(t, "and all cleared", dev.Call("DELETE", inboxPath+"/clear", nil).Want(200).Object(),
				map[string]any{"success": true, "clearedCount": 2})
			dev.Call("GET", a.Header.Get("Location"), nil).Refused(404)
		},
		"nobody sees another's": func(_ *testing.T, me *nodetest.Client) {
			dev := me.Join("developer").Stay()
			id := send(me, dev.UserID, "private")
			for _, other := range []*nodetest.Client{me, me.Service.SignUp(nodetest.Address())} {
				other.Call("GET", inboxPath+"/"+id, nil).Refused(404)
				other.Call("PATCH", inboxPath+"/"+id+"/read", nil).Refused(404)
				other.Call("DELETE", inboxPath+"/clear", nil).Want(200)
			}
			dev.Call("GET", inboxPath+"/"+id, nil).Want(200).Shows(map[string]any{"read": false})
			dev.Call("PATCH", inboxPath+"/unknown/read", nil).Refused(404)
		},
		"admins send to the members of their tenant": func(_ *testing.T, me *nodetest.Client) {
			dev, stranger := me.Join("developer").Stay(), me.Service.SignUp(nodetest.Address())
			pending := me.Call("POST", usersPath(me), map[string]string{"email": nodetest.Address(), "role": "viewer"}).Want(201).Object()["userId"]
			for _, to := range []any{stranger.UserID, uuid.NewString(), pending} {
				me.Call("POST", inboxPath+"/send", map[string]any{"userId": to, "tenantId": me.Tenant, "title": "x", "type": "x"}).
					Refused(404)
			}
			message := map[string]any{"userId": dev.UserID, "title": "x", "type": "x"}
			me.Call("POST", inboxPath+"/send", message).Refused(422, "tenantId")
			me.Call("POST", inboxPath+"/send", `{}`).Refused(422, "tenantId", "userId", "title", "type")
			message["tenantId"] = me.Tenant
			dev.Call("POST", inboxPath+"/send", message).Refused(403)
			stranger.Call("POST", inboxPath+"/send", message).Refused(403)
			message["tenantId"] = stranger.Tenant
			me.Call("POST", inboxPath+"/send", message).Refused(403)
		},
		"what is wrong with one is told at once": func(_ *testing.T, me *nodetest.Client) {
			bad := func(body map[string]any, fields ...string) {
				for name, value := range map[string]any{"userId": me.UserID, "tenantId": me.Tenant, "title": "x", "type": "x"} {
					if _, set := body[name]; !set {
						body[name] = value
					}
				}
				me.Call("POST", inboxPath+"/send", body).Refused(422, fields...)
			}
			bad(map[string]any{"title": strings.Repeat("ä", 201), "body": strings.Repeat("ä", 2001), "type": "", "extra": 1},
				"title", "body", "type", "extra")
			bad(map[string]any{"data": map[string]any{"n": 1, "o": map[string]any{}}}, "data.n", "data.o")
			bad(map[string]any{"data": map[string]any{"google.x": "y"}}, "data")
			bad(map[string]any{"data": map[string]any{"x": strings.Repeat("y", 4096)}}, "data")
			bad(map[string]any{"data": []any{}, "title": 1}, "data", "title")
			bad(map[string]any{"type": "invitation.accepted"}, "type")
		},
		"a key sends one": func(t *testing.T, me *nodetest.Client) {
			body, key := map[string]any{
				"userId":   me.UserID,
				"tenantId": me.Tenant,
				"title":    "once",
				"type":     "x",
			}, uuid.NewString()
			first := me.Call("POST", inboxPath+"/send", body, "Idempotency-Key", key).Want(201)
			second := me.Call("POST", inboxPath+"/send", body, "Idempotency-Key", key).Want(201)
			nodetest.Same(t, "the answer", second.Object(), first.Object())
			list, _ := inboxOf(me, "")
			nodetest.Same(t, "how many there are",
				len(slices.DeleteFunc(list, func(n map[string]any) bool { return n["title"] != "once" })), 1)
		},
		"old paths do the same": func(t *testing.T, me *nodetest.Client) {
			me = me.Service.SignUp(nodetest.Address()) // the other's inbox may get notices of other cases
			me.Call("DELETE", "/api/notifications/clear", nil).Want(200)
			me.Call("POST", "/api/notifications/send", map[string]any{"userId": me.UserID, "tenantId": me.Tenant, "title": "old", "type": "x"}).
				Want(201)
			a := me.Call("GET", "/api/notifications", nil).Want(200)
			nodetest.Same(t, "the list", titles(asMaps(a.Object()["notifications"])), []string{"old"})
			if a.Header.Get("Deprecation") == "" || !strings.Contains(a.Header.Get("Link"), inboxPath) {
				t.Errorf("the headers are %v", a.Header)
			}
			me.Call("PATCH", "/api/notifications/read-all", nil).Want(200).Shows(map[string]any{"markedCount": 1})
			me.Call("POST", "/api/notifications/device-tokens", map[string]any{"deviceToken": nodetest.Address(), "deviceType": "web"}).
				Want(201)
			me.Call("GET", "/api/notifications/device-tokens", nil).Want(200)
		},
	}.Run(t)
}

func TestAPersonIsSentABoundedNumberOfNotificationsADay(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	first, second := me.Join("developer").Stay(), me.Join("developer").Stay()
	body := func(c *nodetest.Client, to *nodetest.Client) map[string]any {
		return map[string]any{"userId": to.UserID, "tenantId": c.Tenant, "title": "x", "type": "x"}
	}
	for range quota.MaxNotifications - 1 {
		send(me, first.UserID, "x")
	}
	other := me.NewTenant("Of the same creator")
	other.Call("POST", inboxPath+"/send", body(other, first)).Want(404) // no member, so it does not count
	send(me, first.UserID, "the last")
	first.Call("DELETE", inboxPath+"/clear", nil).Want(200)
	refused := me.Call("POST", inboxPath+"/send", body(me, first)).Want(429)
	if seconds, err := strconv.Atoi(refused.Header.Get("Retry-After")); err != nil || seconds < 80_000 ||
		seconds > 24*60*60 {
		t.Errorf("they may come again in %q s", refused.Header.Get("Retry-After"))
	}
	send(me, second.UserID, "x")
}

func TestARefusedNotificationDoesNotCount(t *testing.T) {
	t.Parallel()
	root := superUser(t)
	for range quota.MaxNotifications + 1 {
		root.Call("POST", inboxPath+"/send", map[string]any{"userId": "nobody", "title": "x", "type": "x"}).Want(404)
	}
}

func TestPagesOfNotifications(t *testing.T) {
	nodetest.Cases{
		"what arrives meanwhile is neither skipped nor repeated": func(t *testing.T, me *nodetest.Client) {
			dev := welcomed(me)
			want := make([]string, 7)
			for i := range 7 {
				want[6-i] = fmt.Sprintf("n%d", i)
				send(me, dev.UserID, want[6-i])
			}
			var got []any
			page, next := inboxOf(dev, "?limit=2&unreadOnly=true")
			for {
				got = append(got, titles(page)...)
				for _, n := range page { // reading does not shift the pages
					dev.Call("PATCH", inboxPath+"/"+n["id"].(string)+"/read", nil).Want(200)
				}
				send(me, dev.UserID, "later")
				if next == "" {
					break
				}
				page, next = inboxAt(dev, next)
			}
			nodetest.Same(t, "all pages", got, want)
		},
		"a page is as long as asked": func(t *testing.T, me *nodetest.Client) {
			dev := welcomed(me)
			for i := range 22 {
				send(me, dev.UserID, fmt.Sprint(i))
			}
			page, next := inboxOf(dev, "")
			nodetest.Same(t, "the first page", []any{len(page), page[0]["title"], next != ""}, []any{20, "21", true})
			rest, none := inboxAt(dev, next)
			nodetest.Same(t, "the next page", []any{titles(rest), none}, []any{[]string{"1", "0"}, ""})
			byOffset, none := inboxOf(dev, "?limit=100&offset=20")
			nodetest.Same(t, "by offset", []any{byOffset, none}, []any{rest, ""})
			dev.Call("GET", inboxPath+"?limit=3&offset=2", nil).
				Want(200).
				Shows(map[string]any{"totalCount": 22, "unreadCount": 22})
			for query, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "offset=-1": "offset", "cursor=?": "cursor", "cursor=zzzzzzzzzzzz": "cursor"} {
				dev.Call("GET", inboxPath+"?"+query, nil).Refused(422, field)
			}
			dev.Call("GET", next+"&offset=1", nil).Refused(422, "offset")
		},
	}.Run(t)
}

// Concurrent changes of a person's inbox wait in the service, so that one person uses one database connection.
func TestOnePersonsChangesAreMadeOneAtATime(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	greedy, quiet := s.SignUp("greedy@example.com"), s.SignUp("quiet@example.com")
	conn, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	held, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(
		t.Context(), `select from keep.people where user_id = $1 for update`, greedy.UserID,
	); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		err := conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).
			Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var sent sync.WaitGroup
	for range 8 {
		sent.Go(func() {
			greedy.Attempt("POST", inboxPath+"/send",
				fmt.Sprintf(`{"userId":%q,"tenantId":%q,"title":"x","type":"x"}`, greedy.UserID, greedy.Tenant))
		})
	}
	s.Eventually("one waits for the lock", func() bool { return waiting() > 0 })
	for range 5 {
		send(quiet, quiet.UserID, "x")
	}
	nodetest.Same(t, "changes that wait for the lock", waiting(), 1)
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent.Wait()
}
