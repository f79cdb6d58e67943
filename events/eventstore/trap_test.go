package eventstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
)

// Without a position, the client starts at the end.
func TestSubscriptionFromTheZeroPositionBeginsAtTheStart(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"), renamed("b"))
	expect(t, follow(t, s, events.Position{}), 1, 2)
}

// Reads include their start; subscriptions exclude it.
func TestReadIncludesAndSubscriptionExcludesTheirBegin(t *testing.T) {
	t.Parallel()
	s := open(t)
	a := mustAppend(t, s, "project-1", 0, renamed("a"))
	mustAppend(t, s, "project-1", 1, renamed("b"), renamed("c"))
	expect(t, follow(t, s, a), 2, 2)
	var got []events.Revision
	for r, err := range s.Read(t.Context(), "project-1", 2) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Revision)
	}
	if !slices.Equal(got, []events.Revision{2, 3}) {
		t.Errorf("read from revision 2 gave %v", got)
	}
	// Events of one append share the commit position, so a subscription between them needs the prepare position too.
	list := read(t, s, "project-1")
	if list[1].Position.Commit != list[2].Position.Commit {
		t.Fatalf("positions %v and %v do not share their commit", list[1].Position, list[2].Position)
	}
	expect(t, follow(t, s, list[1].Position), 3, 1)
}

// Without an expected revision, the client appends at any.
func TestAppendToAStreamThatShouldNotExist(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	if _, err := s.Append(t.Context(), "project-1", 0, []events.Event{renamed("b")}); !errors.Is(err, events.ErrConflict) {
		t.Errorf("append: %v, want ErrConflict", err)
	}
}

// If the server has forgotten an append, or omits its position, the stream has the answer.
func TestRepeatedAppendIsFoundInItsStream(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	b, c := renamed("b"), renamed("c")
	p := mustAppend(t, s, "project-1", 1, b, c)
	mustAppend(t, s, "project-1", 3, renamed("d"))
	check := func() {
		t.Helper()
		if repeated := mustAppend(t, s, "project-1", 1, b, c); repeated != p {
			t.Errorf("the repeated append is at %v, the first was at %v", repeated, p)
		}
		for _, other := range [][]events.Event{{c, b}, {b, renamed("x")}, {b, c, renamed("x")}, {c}} {
			if _, err := s.Append(t.Context(), "project-1", 1, other); !errors.Is(err, events.ErrConflict) {
				t.Errorf("another append at its revision: %v, want ErrConflict", err)
			}
		}
	}
	s.server.OmitPositions()
	check()
	s.server.RefuseRepeats()
	check()
	if got := read(t, s, "project-1"); len(got) != 4 {
		t.Errorf("%d events stand in the stream, want 4", len(got))
	}
}

func TestForeignPositionIsRefusedThoughOthersAppend(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := mustAppend(t, s, "project-1", 0, renamed("a"))
	s.server.Inject("orders-1", "OrderPlaced", 10)
	for page, err := range s.Subscribe(t.Context(), events.Position{Commit: p.Commit, Prepare: p.Prepare + 1}) {
		if err != nil {
			t.Errorf("a position before the end of the log: %v", err)
		} else if !page.Live || len(page.Events) > 0 {
			t.Errorf("after the last event the first page is %+v", page)
		}
		break
	}
	for page, err := range s.Subscribe(t.Context(), events.Position{Commit: p.Commit + 1_000_000, Prepare: p.Prepare}) {
		if err == nil || errors.Is(err, events.ErrUnavailable) {
			t.Errorf("a position past the end of the log gives %+v, %v; want a final error", page, err)
		}
		break
	}
}

func TestTrafficOfOthersIsPassedOver(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := mustAppend(t, s, "project-1", 0, renamed("a"))
	s.server.Inject("orders-1", "OrderPlaced", 5000)
	var next events.Position
	for page, err := range s.Subscribe(t.Context(), events.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			if e.Stream != "project-1" {
				t.Errorf("an event of %s came", e.Stream)
			}
		}
		if next = page.Next; page.Live {
			break
		}
	}
	if next.Compare(first) <= 0 {
		t.Errorf("after 5000 events of others the position is %v, still that of the last event of ours", next)
	}
	// A live subscription also advances without events, and does not send again what it has passed.
	pages := follow(t, s, next)
	live(t, pages)
	s.server.Inject("orders-1", "OrderPlaced", 5000)
	page := <-pages
	if len(page.Events) > 0 || page.Next.Compare(next) <= 0 || !page.Live {
		t.Errorf("the page is %+v, want a live one without events that has moved on", page)
	}
	second := mustAppend(t, s, "project-1", 1, renamed("b"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r, err := range s.Subscribe(ctx, page.Next) {
		if err == nil && len(r.Events) == 0 { // of the others, the live subscription had passed some alone
			continue
		}
		if err != nil || len(r.Events) != 1 || r.Events[0].Position != second {
			t.Errorf("after a position without event the first page with events is %+v, %v", r, err)
		}
		break
	}
}

func TestHeadIsTheLastOfOurEvents(t *testing.T) {
	t.Parallel()
	s := open(t)
	head := func(of events.Store, want events.Position) {
		t.Helper()
		for range 2 {
			if got, err := of.Head(t.Context()); err != nil || got != want {
				t.Errorf("head is %v, %v, want %v", got, err, want)
			}
		}
	}
	head(s, events.Position{})
	s.server.Inject("orders-1", "OrderPlaced", 100)
	head(s, events.Position{})
	p := mustAppend(t, s, "project-1", 0, renamed("a"), renamed("b"))
	head(s, p)
	s.server.Inject("orders-1", "OrderPlaced", 3000)
	head(s, p)
	other := connect(t, s.server.URL())
	head(other, p)
	p = mustAppend(t, other, "project-1", 2, renamed("c"))
	head(s, p)
	s.server.Inject("orders-1", "OrderPlaced", 3000)
	live(t, follow(t, s, events.Position{}))
	head(s, p)
}

// The client ends the process at an event without a creation time.
func TestEventWithoutTimeOfCreation(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	s.server.OmitCreated()
	if got := read(t, s, "project-1"); len(got) != 1 || got[0].Err != nil {
		t.Errorf("read gave %+v", got)
	}
	expect(t, follow(t, s, events.Position{}), 1, 1)
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	server := esdbtest.New(t)
	host := strings.TrimPrefix(strings.TrimSuffix(server.URL(), "?tls=false"), "esdb://")
	for url, want := range map[string]string{
		"esdb://admin:secret@" + host + "?tls=false": "sends no credentials without TLS",
		"esdb://admin@" + host:                       "sends no credentials without a password",
		"esdb://admin:secret@a b":                    "connection string",
		"http://" + host:                             "invalid scheme",
	} {
		if _, err := openURL(t.Context(), url); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("open %s: %v, want a refusal that says %q and keeps the password", url, err, want)
		}
	}
	server.SetVersion("22.10.3")
	if _, err := openURL(t.Context(), server.URL()); err == nil || !strings.Contains(err.Error(), "22.10") {
		t.Errorf("open an old server: %v, want a refusal that names its version", err)
	}
}

func TestOpenFindsTheLeaderOfACluster(t *testing.T) {
	t.Parallel()
	server := esdbtest.New(t)
	host := strings.TrimPrefix(strings.TrimSuffix(server.URL(), "?tls=false"), "esdb://")
	s := connect(t, "esdb://"+host+",127.0.0.1:1?tls=false")
	mustAppend(t, s, "project-1", 0, renamed("a"))
}

// The client reports this error by a code of its own, which esdb.FromError does not find in a wrapped error.
func TestDeletedStreamIsAnErrorForGood(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	s.server.Tombstone("project-1")
	for _, err := range s.Read(t.Context(), "project-1", 0) {
		if err == nil || errors.Is(err, events.ErrUnavailable) {
			t.Errorf("read: %v, want a final error", err)
		}
	}
	_, err := s.Append(t.Context(), "project-1", 1, []events.Event{renamed("b")})
	if err == nil || errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrConflict) {
		t.Errorf("append: %v, want a final error", err)
	}
}

func TestEventsOfOneAppendTogetherAreTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t)
	half := strings.Repeat("x", events.MaxEventBytes/2)
	if _, err := s.Append(t.Context(), "project-1", 0, []events.Event{renamed(half), renamed(half)}); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("append: %v, want ErrTooLarge", err)
	}
}

// rawClient returns a client of the server without our codec.
func rawClient(t *testing.T, url string) *esdb.Client {
	t.Helper()
	config, err := esdb.ParseConnectionString(url)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = nil
	client, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestStoredForm(t *testing.T) {
	t.Parallel()
	s := open(t)
	e := renamed("<a&b>")
	mustAppend(t, s, "project-1", 0, e)
	client := rawClient(t, s.server.URL())
	stream, err := client.ReadStream(t.Context(), "project-1", esdb.ReadStreamOptions{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	got, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	r := got.OriginalEvent()
	if r.EventType != "project.updated" || r.EventID != e.ID || r.ContentType != "application/json" ||
		string(r.Data) != string(stored.Data) {
		t.Errorf("stored as %s %v %s %s", r.EventType, r.EventID, r.ContentType, r.Data)
	}
	var metadata struct {
		Version int
		events.Metadata
	}
	if err := json.Unmarshal(r.UserMetadata, &metadata); err != nil || metadata.Version != 1 ||
		metadata.Metadata != e.Metadata {
		t.Errorf("metadata stored as %s: %v", r.UserMetadata, err)
	}
}

// Only metadata of this engine and its server is ignored; anything else means that a fact was altered.
func TestMetadataOfTheFactAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	client := rawClient(t, s.server.URL())
	const fact = `"time":"2026-03-14T15:09:26Z","actor":{"kind":"user","id":"u1"}`
	for i, test := range []struct {
		metadata  string
		canonical bool
	}{
		{`{"version":1,` + fact + `}`, true},
		{`{"version":1,"recorded":"2026-03-14T15:09:26.535Z",` + fact + `}`, true},
		{`{"$correlationId":"x","version":1,` + fact + `,"$by":{"a":[1]}}`, true},
		{`{"version":1,` + fact + `,"reason":"it costs \"$5\""}`, true},
		{`{"version":1,` + fact + `,"approvedBy":"CEO"}`, false},
		{`{"version":1,"version":1,` + fact + `}`, false},
		{`{"version":2,"Version":1,` + fact + `}`, false},
		{`{"version":1,"recorded":"2026-03-14T15:09:26.535Z","Recorded":"2026-03-14T15:09:27Z",` + fact + `}`, false},
		{`{"$x":1,"version":1,"actor":{"id":"EVE"},"Actor":{"kind":"user","id":"u1"},"time":"2026-03-14T15:09:26Z"}`, false},
	} {
		stream := fmt.Sprint("project-", i)
		_, err := client.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{}, esdb.EventData{
			EventID:     uuid.New(),
			EventType:   "project.updated",
			ContentType: esdb.ContentTypeJson,
			Data:        []byte(`{}`),
			Metadata:    []byte(test.metadata),
		})
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, s, stream)
		if len(got) != 1 || got[0].Err != nil {
			t.Fatalf("%s is read as %+v", test.metadata, got)
		}
		if err := events.CheckMetadata(got[0]); (err == nil) != test.canonical {
			t.Errorf("%s: %v, want it to be found canonical: %v", test.metadata, err, test.canonical)
		}
	}
}

// Foreign events in our streams are delivered with an error, and do not stop later ones.
func TestUnreadableEvent(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.server.Inject("project-1", "ProjectPainted", 1)
	mustAppend(t, s, "project-1", 1, renamed("a"))
	got := read(t, s, "project-1")
	if len(got) != 2 || got[0].Err == nil || got[0].Name != "ProjectPainted" || got[1].Err != nil {
		t.Errorf("read gave %+v", got)
	}
	expect(t, follow(t, s, events.Position{}), 1, 2)
}

func TestPagesAreFullWhileCatchingUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.SetPageWait(time.Hour)
	const full = 4
	for range full {
		list := make([]events.Event, eventstore.PageSize)
		for j := range list {
			list[j] = renamed(fmt.Sprint(j))
		}
		mustAppend(t, s, "user-"+uuid.NewString(), 0, list...)
	}
	pages := 0
	for page, err := range s.Subscribe(t.Context(), events.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		if page.Live {
			break
		}
		if pages++; len(page.Events) != eventstore.PageSize {
			t.Errorf("page %d holds %d events, want %d", pages, len(page.Events), eventstore.PageSize)
		}
	}
	if pages != full {
		t.Errorf("%d events came on %d pages, want %d", full*eventstore.PageSize, pages, full)
	}
}

// While it catches up, a subscription may be dropped in the middle of a page. The received events are delivered, and
// the next subscription starts after them.
func TestADroppedSubscriptionDeliversWhatCame(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.SetPageWait(time.Hour)
	const n = 100
	for i := range n {
		mustAppend(t, s, "project-1", events.Revision(i), renamed(fmt.Sprint(i)))
	}
	s.server.DropSubscriptionsAfter(n / 4)
	expect(t, follow(t, s, events.Position{}), 1, n)
}
