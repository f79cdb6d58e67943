package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/events/state"
	flagsapi "flagledger/http/flags"
	"flagledger/queries"
)

type cleanupCommand struct {
	Tenant string `required:"" type:"id" help:"The tenant's id."`
	JSON   bool   `name:"json" help:"Print what GET /api/v1/cleanup answers."`
}

// Run prints the flags of a tenant that can be removed.
func (c cleanupCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(config settings.Config, url string, store events.Store, _ *slog.Logger) error {
		pool, err := node.OpenPool(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		read, stale := queries.New(pool, store, nil, nil), config.Staleness()
		if err := read.HasTenant(ctx, c.Tenant); err != nil {
			return err
		}
		dependencies := newDependencyReader(ctx, c.Tenant, store)
		stale.DependenciesChanged = func(flagKey string) time.Time { return dependencies.changed(ctx, flagKey) }
		list, err := read.Cleanup(ctx, c.Tenant, stale, events.Position{}, queries.Page{})
		if err != nil {
			return err
		}
		flags, err := list.All(ctx)
		if err = cmp.Or(err, dependencies.err); err != nil {
			return err
		}
		if c.JSON {
			entries := make([][]byte, len(flags))
			for i, f := range flags {
				entries[i] = terminal.PrintableJSON(flagsapi.CleanupEntry(f, stale))
			}
			_, err := fmt.Printf("[%s]\n", bytes.Join(entries, []byte(",\n ")))
			return err
		}
		return printCleanup(os.Stdout, flags, stale)
	})
}

// dependencyReader reads the flags and segments that flags depend on from their facts.
type dependencyReader struct {
	tenantID string
	tenant   state.Tenant
	store    events.Store
	flags    map[string]*state.Flag // by key
	segments map[string]*state.Segment
	err      error // the first
}

func newDependencyReader(ctx context.Context, tenantID string, store events.Store) *dependencyReader {
	r := &dependencyReader{
		tenantID: tenantID, store: store, flags: map[string]*state.Flag{}, segments: map[string]*state.Segment{},
	}
	r.fold(ctx, events.TenantStream(tenantID), r.tenant.Apply)
	return r
}

// changed returns when a flag last changed that a flag requires, or a segment that rules lead to, in environments that
// the tenant has; zero without one.
func (r *dependencyReader) changed(ctx context.Context, flagKey string) (newest time.Time) {
	note := func(at time.Time) {
		if at.After(newest) {
			newest = at
		}
	}
	f := r.flag(ctx, flagKey)
	var segments []string
	for _, e := range r.tenant.Environments {
		id := e.ID
		segments = append(segments, state.SegmentsOf(f.Rules[id])...)
		eachReached(f.RequiredFlags(id), func(key string) []string {
			required := r.flag(ctx, key)
			note(required.UpdatedAt)
			if !required.Exists {
				return nil
			}
			segments = append(segments, state.SegmentsOf(required.Rules[id])...)
			return required.RequiredFlags(id)
		})
	}
	eachReached(segments, func(key string) (uses []string) {
		s := r.segment(ctx, key)
		note(s.UpdatedAt)
		for _, use := range s.Uses {
			if s.Exists {
				uses = append(uses, use.Key)
			}
		}
		return uses
	})
	return newest
}

// eachReached calls visit once with each of some keys, and with those that visits return.
func eachReached(keys []string, visit func(key string) []string) {
	seen := map[string]bool{}
	for len(keys) > 0 {
		key := keys[0]
		if keys = keys[1:]; !seen[key] {
			seen[key] = true
			keys = append(keys, visit(key)...)
		}
	}
}

// flag returns the state of a flag, an empty one if it never was.
func (r *dependencyReader) flag(ctx context.Context, key string) *state.Flag {
	if f, ok := r.flags[key]; ok {
		return f
	}
	f := &state.Flag{}
	r.fold(ctx, events.FlagStream(r.tenantID, key), f.Apply)
	r.flags[key] = f
	return f
}

// segment returns the state of a segment, an empty one if it never was.
func (r *dependencyReader) segment(ctx context.Context, key string) *state.Segment {
	if s, ok := r.segments[key]; ok {
		return s
	}
	s := &state.Segment{}
	r.fold(ctx, events.SegmentStream(r.tenantID, key), s.Apply)
	r.segments[key] = s
	return s
}

// fold applies the facts of a stream.
func (r *dependencyReader) fold(ctx context.Context, stream string, apply func(events.Recorded)) {
	for e, err := range r.store.Read(ctx, stream, 0) {
		if err = cmp.Or(err, e.Err); err != nil {
			r.err = cmp.Or(r.err, fmt.Errorf("stream %s: %w", stream, err))
			return
		}
		apply(e)
	}
}

// printCleanup prints a line for each flag.
func printCleanup(w io.Writer, flags []queries.CleanupFlag, stale queries.Staleness) error {
	if len(flags) == 0 {
		_, err := fmt.Fprintln(w, "No flag is unused or settled.")
		return err
	}
	table := terminal.NewTable(w)
	table.Row("FLAG", "LIFECYCLE", "SINCE", "LAST EVALUATED", "SERVES", "TO", "REQUIRED BY")
	for _, f := range flags {
		evaluated, lifecycle := "never", f.Lifecycle(stale)
		if f.LastEvaluated != nil {
			evaluated = f.LastEvaluated.UTC().Format(time.RFC3339)
		}
		table.Row(f.Key, string(lifecycle), f.Since().UTC().Format(time.RFC3339), evaluated, servedAlways(f, lifecycle),
			callersOf(f), strings.Join(f.RequiredBy, ", "))
	}
	return table.Flush()
}

// servedAlways returns what can replace a settled flag.
func servedAlways(f queries.CleanupFlag, lifecycle queries.Lifecycle) string {
	switch {
	case lifecycle != queries.Settled:
		return ""
	case !f.SameOutcome:
		return "another value in each environment"
	case f.VariationName != nil:
		return fmt.Sprintf("%s (%s)", state.Brief(f.Value), *f.VariationName)
	default:
		return state.Brief(f.Value)
	}
}

func callersOf(f queries.CleanupFlag) string {
	var names []string
	for _, c := range f.Clients {
		switch {
		case c.ClientID == nil:
			names = append(names, "people")
		case c.Name != nil:
			names = append(names, *c.Name)
		default:
			names = append(names, *c.ClientID)
		}
	}
	return strings.Join(names, ", ")
}
