package inbox

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/notify"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// noPushes pushes nothing.
type noPushes struct{}

func (noPushes) EnqueuePushesTx(context.Context, pgx.Tx, []string) error { return nil }

// world has the inboxes and a clock that the test sets.
type world struct {
	*Inbox
	t    *testing.T
	pool *pgxpool.Pool
	now  time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, pool: pgtest.Pool(t), now: time.Now()}
	w.Inbox = New(w.pool, noPushes{}, func() time.Time { return w.now })
	return w
}

func (w *world) person() string {
	w.t.Helper()
	id := uuid.NewString()
	if _, err := w.pool.Exec(
		w.t.Context(), `insert into keep.people (user_id, created_at) values ($1, now())`, id,
	); err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) add(userID, title string) notify.Notification {
	w.t.Helper()
	n, err := w.Add(w.t.Context(), notify.Notification{ID: uuid.NewString(), UserID: userID, Title: title})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) list(userID string, l List) Page {
	w.t.Helper()
	p, err := w.List(w.t.Context(), userID, l)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// An inbox keeps its order, even if the nodes' clocks differ.
func TestOrder(t *testing.T) {
	w := newWorld(t)
	me := w.person()
	for i := range 5 {
		w.now = w.now.Add(-time.Hour)
		w.add(me, fmt.Sprint(i))
	}
	page := w.list(me, List{Limit: 10})
	for i, n := range page.Notifications {
		if n.Title != fmt.Sprint(4-i) {
			t.Errorf("at %d stands %s", i, n.Title)
		}
	}
	if len(page.Notifications) != 5 {
		t.Errorf("%d are listed", len(page.Notifications))
	}
}

func TestOneIsAddedOnce(t *testing.T) {
	w := newWorld(t)
	me, other := w.person(), w.person()
	n := notify.Notification{ID: uuid.NewString(), UserID: me, Title: "first"}
	var adding sync.WaitGroup
	for range 4 {
		adding.Go(func() {
			if added, err := w.Add(t.Context(), n); err != nil || added.Title != "first" {
				t.Errorf("got %+v, %v", added, err)
			}
		})
	}
	adding.Wait()
	if p := w.list(me, List{Limit: 10}); p.Total != 1 {
		t.Errorf("there are %d", p.Total)
	}
	n.UserID = other
	if _, err := w.Add(t.Context(), n); commands.KindOf(err) != commands.NotFound {
		t.Errorf("another person's notification is found: %v", err)
	}
	n.ID, n.UserID = uuid.NewString(), uuid.NewString()
	if _, err := w.Add(t.Context(), n); commands.KindOf(err) != commands.NotFound {
		t.Errorf("somebody unknown is notified: %v", err)
	}
}

// The oldest read notifications are removed first, and then the oldest.
func TestAFullInbox(t *testing.T) {
	w := newWorld(t)
	me := w.person()
	w.add(me, "0")
	if _, err := w.pool.Exec(
		t.Context(),
		`insert into keep.notifications (id, user_id, type, title, body, icon, action_type, reference_id, data, created_at)
		select $1 || i, $1, '', '', '', '', '', '', '{}', created_at + i * interval '1 second' from keep.notifications, generate_series(1, $2 - 1) i where user_id = $1`,
		me,
		maxNotifications,
	); err != nil {
		t.Fatal(err)
	}
	rows, err := w.pool.Query(t.Context(), `select id from keep.notifications where user_id = $1 order by created_at`, me)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{500, 10} {
		if _, err := w.Read(t.Context(), me, ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(i int) bool {
		_, err := w.Get(t.Context(), me, ids[i])
		if err != nil && commands.KindOf(err) != commands.NotFound {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, goes := range []int{10, 500, 0, 1} {
		if !kept(goes) {
			t.Fatalf("%d is gone before", goes)
		}
		w.add(me, "new")
		if kept(goes) {
			t.Errorf("%d is kept", goes)
		}
	}
	if p := w.list(me, List{Limit: 1}); p.Total != maxNotifications {
		t.Errorf("there are %d", p.Total)
	}
}

// A tenant that sends without limit pushes out only its own notifications: the oldest read ones, and then the oldest.
func TestATenantPushesOutItsOwn(t *testing.T) {
	w := newWorld(t)
	me := w.person()
	send := func(tenantID, title string) notify.Notification {
		t.Helper()
		n, err := w.Add(t.Context(), notify.Notification{ID: uuid.NewString(), UserID: me, TenantID: tenantID, Title: title})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	platform, other := w.add(me, "of the platform"), send("other", "of another tenant")
	var sent []notify.Notification
	for i := range maxOfTenant {
		sent = append(sent, send("loud", fmt.Sprint(i)))
	}
	if p := w.list(me, List{Limit: 1}); p.Total != maxOfTenant+2 {
		t.Fatalf("there are %d", p.Total)
	}
	if _, err := w.Read(t.Context(), me, sent[9].ID); err != nil {
		t.Fatal(err)
	}
	for _, goes := range []notify.Notification{sent[9], sent[0], sent[1]} {
		latest := send("loud", "more")
		if _, err := w.Get(t.Context(), me, goes.ID); commands.KindOf(err) != commands.NotFound {
			t.Errorf("%s is kept: %v", goes.Title, err)
		}
		for _, stays := range []notify.Notification{platform, other, sent[2], latest} {
			if _, err := w.Get(t.Context(), me, stays.ID); err != nil {
				t.Errorf("%s is gone: %v", stays.Title, err)
			}
		}
	}
	if p := w.list(me, List{Limit: 1}); p.Total != maxOfTenant+2 {
		t.Errorf("there are %d", p.Total)
	}
}

// Beyond its limit, a tenant's notifications stay in the inbox but are not pushed.
func TestPushesOfATenantAreBounded(t *testing.T) {
	w := newWorld(t)
	me := w.person()
	if _, _, err := w.Register(t.Context(), me, Device{Token: "token", Type: "web"}); err != nil {
		t.Fatal(err)
	}
	pushed := func(tenantID string, notifications int) (n int) {
		t.Helper()
		before := w.waiting(t)
		for range notifications {
			if _, err := w.Add(
				t.Context(), notify.Notification{ID: uuid.NewString(), UserID: me, TenantID: tenantID, Title: "x"},
			); err != nil {
				t.Fatal(err)
			}
		}
		return w.waiting(t) - before
	}
	if n := pushed("loud", maxPushedOfTenant+10); n != maxPushedOfTenant {
		t.Errorf("%d of a tenant are pushed", n)
	}
	if n := pushed("other", 1) + pushed("", 1); n != 2 {
		t.Errorf("%d are pushed of another tenant and of the platform, want 2", n)
	}
	w.now = w.now.Add(25 * time.Hour)
	if n := pushed("loud", 1); n != 1 {
		t.Errorf("%d are pushed on the next day", n)
	}
}

// waiting returns how many notifications wait for devices.
func (w *world) waiting(t *testing.T) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), `select count(*) from keep.pushes`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOldNotificationsAreRemoved(t *testing.T) {
	w := newWorld(t)
	me := w.person()
	w.add(me, "old")
	w.now = w.now.Add(time.Minute)
	w.add(me, "young")
	w.now = w.now.Add(kept - time.Second)
	if err := w.RemoveOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := w.list(me, List{Limit: 10}); len(p.Notifications) != 1 || p.Notifications[0].Title != "young" {
		t.Errorf("left are %+v", p.Notifications)
	}
}

// If two people register a token at the same time, the device belongs to the later one, as a new device.
func TestATokenThatTwoRegisterAtOnce(t *testing.T) {
	w := newWorld(t)
	first, second := w.person(), w.person()
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := register(t.Context(), tx, first, Device{Token: "token", Type: "web"}, w.now); err != nil {
		t.Fatal(err)
	}
	var late sync.WaitGroup
	late.Go(func() {
		if d, isNew, err := w.Register(t.Context(), second, Device{Token: "token", Type: "ios"}); err != nil || !isNew ||
			d.Type != "ios" {
			t.Errorf("the later one gets %+v, new %v: %v", d, isNew, err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; {
		var waits bool
		if err := w.pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).
			Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the later one does not wait for the first")
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	late.Wait()
	for person, want := range map[string]int{first: 0, second: 1} {
		if list, err := w.Devices(t.Context(), person); err != nil || len(list) != want {
			t.Errorf("somebody has %v, want %d: %v", list, want, err)
		}
	}
}
