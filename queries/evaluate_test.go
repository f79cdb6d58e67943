package queries

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
)

// log is a store of one page.
type log struct {
	events.Store
	page events.Page
}

func (log) Engine() string { return "log" }

func (l log) Subscribe(ctx context.Context, _ events.Position) iter.Seq2[events.Page, error] {
	return func(yield func(events.Page, error) bool) {
		if yield(l.page, nil) {
			<-ctx.Done()
		}
	}
}

// tenantOf is a tenant with flags a, b and c.
func tenantOf(t *testing.T) *snapshot.Tenant {
	t.Helper()
	production := events.EnvironmentRef{ID: "e", Name: "production"}
	page := events.Page{Live: true}
	add := func(stream string, facts ...events.Fact) {
		for i, fact := range facts {
			page.Events = append(page.Events,
				events.Recorded{Stream: stream, Revision: events.Revision(i + 1), Event: events.Event{Fact: fact}})
		}
	}
	add(events.TenantStream("t"), events.TenantCreated{ID: "t"}, events.EnvironmentAdded{Environment: production})
	for _, key := range []string{"a", "b", "c"} {
		add(events.FlagStream("t", key), events.FlagCreated{Type: events.BooleanFlag, DefaultValue: []byte("false")},
			events.FlagEnabled{Environment: production})
	}
	s := snapshot.New(snapshot.Options{})
	go s.Run(t.Context(), log{page: page}, func(events.Page) {}, slog.New(slog.DiscardHandler))
	<-s.Ready()
	tenant, _ := s.Tenant("t")
	return tenant
}

func TestEvaluatingManyFlagsEnds(t *testing.T) {
	tenant := tenantOf(t)
	environment, _ := tenant.Environment("production")
	for name, c := range map[string]struct {
		atMost  time.Duration
		goneAt  string // the flag at which the caller goes
		want    string
		tooSlow bool
	}{
		"with the last one":             {time.Minute, "", "[a b c]", false},
		"when it has taken too long":    {0, "", "[a]", true},
		"when the caller has gone":      {time.Minute, "a", "[a b]", true},
		"with the last one in any case": {time.Minute, "c", "[a b c]", false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, gone := context.WithCancel(t.Context())
			defer gone()
			var keys []string
			var last error
			for key, answer := range Select(tenant, nil, func(*snapshot.Flag) bool { return true }).Evaluate(ctx, environment, &evaluation.Context{}, c.atMost) {
				if keys, last = append(keys, key), answer.Err; key == c.goneAt {
					gone()
				}
			}
			if got := fmt.Sprint(keys); got != c.want || errors.Is(last, ErrTooSlow) != c.tooSlow {
				t.Errorf("it tells of %s and ends with %v", got, last)
			}
		})
	}
}
