package esdbtest_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"flagledger/events/eventstore/esdbtest"
)

func connect(t *testing.T) (*esdbtest.Server, *esdb.Client) {
	t.Helper()
	server := esdbtest.New(t)
	config, err := esdb.ParseConnectionString(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = nil
	client, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

func event(eventType string) esdb.EventData {
	return esdb.EventData{EventID: uuid.New(), EventType: eventType, ContentType: esdb.ContentTypeJson, Data: []byte(`{}`)}
}

// code returns the client's code of an error, -1 for none.
func code(err error) esdb.ErrorCode {
	if e, ok := errors.AsType[*esdb.Error](err); ok {
		return e.Code()
	}
	return -1
}

func types(t *testing.T, stream *esdb.ReadStream, err error) (list []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) || code(err) == esdb.ErrorCodeResourceNotFound {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.OriginalEvent().EventType)
	}
}

func TestExpectedRevisions(t *testing.T) {
	_, client := connect(t)
	a, b, c := event("a"), event("b"), event("c")
	ab := []esdb.EventData{a, b}
	const wrong = esdb.ErrorCodeWrongExpectedVersion
	for i, step := range []struct {
		expected esdb.ExpectedRevision
		list     []esdb.EventData
		revision uint64
		code     esdb.ErrorCode
	}{
		{esdb.StreamExists{}, ab, 0, wrong},
		{esdb.Revision(0), ab, 0, wrong},
		{esdb.NoStream{}, ab, 1, -1},
		{esdb.NoStream{}, ab, 1, -1}, // a repetition
		{esdb.Any{}, ab, 1, -1},      // a repetition
		{esdb.StreamExists{}, []esdb.EventData{b}, 1, -1},
		{esdb.NoStream{}, []esdb.EventData{c}, 0, wrong},
		{esdb.NoStream{}, []esdb.EventData{a, c}, 0, wrong},
		{esdb.NoStream{}, []esdb.EventData{a, b, c}, 0, wrong},
		{esdb.Revision(0), []esdb.EventData{c}, 0, wrong},
		{esdb.Revision(1), []esdb.EventData{c}, 2, -1},
		{esdb.Revision(0), []esdb.EventData{b, c}, 2, -1}, // a repetition of parts of two appends
		{esdb.Revision(0), []esdb.EventData{b}, 1, -1},    // followed by another event
		{esdb.Any{}, []esdb.EventData{event("d")}, 3, -1},
	} {
		result, err := client.AppendToStream(
			t.Context(),
			"s",
			esdb.AppendToStreamOptions{ExpectedRevision: step.expected},
			step.list...)
		if code(err) != step.code || err == nil && result.NextExpectedVersion != step.revision {
			t.Errorf("step %d: %+v, %v; want revision %d, code %d", i, result, err, step.revision, step.code)
		}
	}
	stream, err := client.ReadStream(t.Context(), "s", esdb.ReadStreamOptions{}, 100)
	if got := types(t, stream, err); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("the stream holds %v", got)
	}
}

func TestReads(t *testing.T) {
	_, client := connect(t)
	if _, err := client.AppendToStream(
		t.Context(), "s", esdb.AppendToStreamOptions{}, event("a"), event("b"), event("c"),
	); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		options esdb.ReadStreamOptions
		count   uint64
		want    []string
	}{
		{esdb.ReadStreamOptions{From: esdb.Start{}}, 2, []string{"a", "b"}},
		{esdb.ReadStreamOptions{From: esdb.Revision(1)}, 9, []string{"b", "c"}},
		{esdb.ReadStreamOptions{From: esdb.Revision(3)}, 9, nil},
		{esdb.ReadStreamOptions{From: esdb.End{}}, 9, nil},
		{esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}, 2, []string{"c", "b"}},
		{esdb.ReadStreamOptions{From: esdb.Revision(1), Direction: esdb.Backwards}, 9, []string{"b", "a"}},
		{esdb.ReadStreamOptions{From: esdb.Start{}, Direction: esdb.Backwards}, 9, nil},
	} {
		stream, err := client.ReadStream(t.Context(), "s", c.options, c.count)
		if got := types(t, stream, err); !slices.Equal(got, c.want) {
			t.Errorf("read %d of the stream gave %v, want %v", i, got, c.want)
		}
	}
	stream, err := client.ReadAll(t.Context(), esdb.ReadAllOptions{From: esdb.Start{}}, 9)
	if got := types(t, stream, err); !slices.Equal(got, []string{"$UpdateSettings", "a", "b", "c"}) {
		t.Errorf("the log holds %v", got)
	}
	stream, err = client.ReadAll(t.Context(), esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, 2)
	if got := types(t, stream, err); !slices.Equal(got, []string{"c", "b"}) {
		t.Errorf("the log ends with %v", got)
	}
}

func TestDeletedStreams(t *testing.T) {
	_, client := connect(t)
	for _, name := range []string{"soft", "hard"} {
		if _, err := client.AppendToStream(t.Context(), name, esdb.AppendToStreamOptions{}, event("a")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.DeleteStream(t.Context(), "soft", esdb.DeleteStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	stream, err := client.ReadStream(t.Context(), "soft", esdb.ReadStreamOptions{}, 9)
	if got := types(t, stream, err); len(got) > 0 {
		t.Errorf("the deleted stream holds %v", got)
	}
	result, err := client.AppendToStream(t.Context(), "soft",
		esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, event("b"))
	if err != nil || result.NextExpectedVersion != 1 {
		t.Errorf("append to the deleted stream: %+v, %v, want revision 1", result, err)
	}
	if _, err := client.TombstoneStream(t.Context(), "hard", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppendToStream(t.Context(), "hard", esdb.AppendToStreamOptions{}, event("b")); code(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("append to a stream with a tombstone: %v", err)
	}
	stream, err = client.ReadStream(t.Context(), "hard", esdb.ReadStreamOptions{}, 9)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := stream.Recv(); code(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("read of a stream with a tombstone: %v", err)
	}
}

func TestSubscriptions(t *testing.T) {
	server, client := connect(t)
	server.Inject("orders-1", "OrderPlaced", 10)
	server.Inject("flag-1", "flag.created", 2)
	for i, c := range []struct {
		filter *esdb.SubscriptionFilter
		want   int
	}{
		{&esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"flag-", "x"}}, 2},
		{&esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "^orders"}, 10},
		{&esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{"Order"}}, 10},
		{esdb.ExcludeSystemEventsFilter(), 12},
		{nil, 13},
	} {
		subscription, err := client.SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{
			From: esdb.Start{}, Filter: c.filter, MaxSearchWindow: 2, CheckpointInterval: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		came, checkpoints := 0, 0
		for caughtUp := false; !caughtUp; {
			switch m := subscription.Recv(); {
			case m.EventAppeared != nil:
				came++
			case m.CheckPointReached != nil:
				checkpoints++
			case m.CaughtUp != nil:
				caughtUp = true
			default:
				t.Fatalf("subscription %d: %+v", i, m)
			}
		}
		if want := map[bool]int{true: 3}[c.filter != nil]; came != c.want || checkpoints != want {
			t.Errorf("subscription %d delivered %d events and %d checkpoints, want %d and %d", i, came, checkpoints, c.want, want)
		}
		server.DropSubscriptions()
		for m := subscription.Recv(); m.SubscriptionDropped == nil; m = subscription.Recv() {
			t.Errorf("subscription %d: %+v after its drop", i, m)
		}
	}
}
