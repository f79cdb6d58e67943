package usage

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
)

// realNode is a node whose flags are evaluated by a snapshot that follows a log.
type realNode struct {
	*cluster
	store    *postgres.Store
	snapshot *snapshot.Snapshot
	applied  chan events.Position
	meter    *Meter
}

const (
	realTenant      = "0198c5a1-0000-7000-8000-000000000001"
	realEnvironment = "0198c5a1-0000-7000-8000-000000000002"
)

// newRealNode returns a node with a tenant and one flag that serves its only variation "first".
func newRealNode(t *testing.T) *realNode {
	t.Helper()
	n := &realNode{cluster: newCluster(t), snapshot: snapshot.New(), applied: make(chan events.Position)}
	var err error
	log := slog.New(slog.DiscardHandler)
	if n.store, err = postgres.Open(t.Context(), n.pool.Config().ConnString(), log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.store.Close)
	done := make(chan struct{})
	ctx := t.Context()
	go func() {
		defer close(done)
		n.snapshot.Run(ctx, n.store, func(page events.Page) {
			select {
			case n.applied <- page.Next:
			case <-ctx.Done():
			}
		}, log)
	}()
	t.Cleanup(func() { <-done })
	n.meter = New(n.pool, n.snapshot, func() time.Time { return n.clock })
	environment := events.EnvironmentRef{ID: realEnvironment, Name: "production"}
	n.append(events.TenantStream(realTenant), 0,
		events.TenantCreated{ID: realTenant, Name: "Acme", Plan: events.StandardPlan},
		events.EnvironmentAdded{Environment: environment})
	n.append(events.FlagStream(realTenant, "k"), 0,
		events.FlagCreated{
			TenantID:     realTenant,
			Key:          "k",
			ID:           uuid.NewString(),
			Name:         "k",
			Type:         events.StringFlag,
			DefaultValue: json.RawMessage(`"x"`),
			Salt:         "s",
			Variations:   []events.Variation{{ID: "a", Name: "first", Value: json.RawMessage(`"a"`), Weight: 1}},
		},
		events.FlagEnabled{Environment: environment})
	return n
}

// append adds facts to a stream, and waits until the snapshot holds them.
func (n *realNode) append(stream string, at events.Revision, facts ...events.Fact) {
	n.t.Helper()
	var list []events.Event
	for _, fact := range facts {
		list = append(list, events.Event{
			ID:       uuid.Must(uuid.NewV7()),
			Metadata: events.Metadata{Time: n.clock, Actor: events.Actor{Kind: events.UserActor, ID: "u"}},
			Fact:     fact,
		})
	}
	appended, err := n.store.Append(n.t.Context(), stream, at, list)
	if err != nil {
		n.t.Fatal(err)
	}
	timeout := time.After(time.Minute)
	for reached := (events.Position{}); reached.Compare(appended.Position) < 0; {
		select {
		case reached = <-n.applied:
		case <-timeout:
			n.t.Fatalf("the snapshot has not reached %s", appended.Position)
		}
	}
}

// evaluate evaluates the flag once, and counts that.
func (n *realNode) evaluate() {
	n.t.Helper()
	tenant, _ := n.snapshot.Tenant(realTenant)
	flag, ok := tenant.Flag("k")
	if !ok {
		n.t.Fatal("the snapshot lacks the flag")
	}
	r, err := flag.Evaluate(realEnvironment, &evaluation.Context{TargetingKey: "u"})
	if err != nil {
		n.t.Fatal(err)
	}
	tenant.CountEvaluation("k", realEnvironment, &r, nil, tenant.CountTime(n.clock))
}

// outcomes lists the outcomes that are stored, by the names of their variations.
func (n *realNode) outcomes() (names string) {
	n.t.Helper()
	err := n.pool.QueryRow(n.t.Context(), `select coalesce(string_agg(variation_name, ' '), '') from keep.flag_outcomes`).
		Scan(&names)
	if err != nil {
		n.t.Fatal(err)
	}
	return names
}

// evaluations counts those that are stored of the flag.
func (n *realNode) evaluations() (count int) {
	n.t.Helper()
	err := n.pool.QueryRow(n.t.Context(), `select coalesce(sum(evaluations), 0) from keep.flag_hours`).Scan(&count)
	if err != nil {
		n.t.Fatal(err)
	}
	return count
}

func TestFlushAfterFailureWritesOutcomes(t *testing.T) {
	t.Parallel()
	n := newRealNode(t)
	alter := func(change string) {
		t.Helper()
		if _, err := n.pool.Exec(t.Context(), `alter table keep.flag_hours `+change); err != nil {
			t.Fatal(err)
		}
	}
	n.evaluate()
	alter(`add constraint refused check (flag_key <> 'k')`)
	if err := n.meter.flush(t.Context(), time.Minute, false); err == nil || n.outcomes() != "" {
		t.Errorf("the first flush ended with %v and has written %q", err, n.outcomes())
	}
	alter(`drop constraint refused`)
	n.flush(n.meter)
	if got := fmt.Sprint(n.evaluations(), " ", n.outcomes()); got != "1 first" {
		t.Errorf("the second flush has written %s, want 1 first", got)
	}
}

func TestNewNameOfVariationIsWritten(t *testing.T) {
	t.Parallel()
	n := newRealNode(t)
	n.evaluate()
	n.flush(n.meter)
	n.append(events.FlagStream(realTenant, "k"), 2,
		events.VariationUpdated{ID: "a", Name: &events.Change[string]{From: "first", To: "second"}})
	n.evaluate()
	n.flush(n.meter)
	if got := fmt.Sprint(n.evaluations(), " ", n.outcomes()); got != "2 second" {
		t.Errorf("the flag has %s, want 2 second", got)
	}
}
