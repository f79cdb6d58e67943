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
		segments := segmentReader{c.Tenant, store, map[string]*state.Segment{}, nil}
		stale.DependenciesChanged = func(flagKey string) time.Time { return segments.changed(ctx, flagKey) }
		list, err := read.Cleanup(ctx, c.Tenant, stale, events.Position{}, queries.Page{})
		if err != nil {
			return err
		}
		flags, err := list.All(ctx)
		if err = cmp.Or(err, segments.err); err != nil {
			return err
		}
		if c.JSON {
			entries := make([][]byte, len(flags))
			for i, f := range flags {
				entries[i] = terminal.PrintableJSON(flagsapi.CleanupEntry(f, stale, nil))
			}
			_, err := fmt.Printf("[%s]\n", bytes.Join(entries, []byte(",\n ")))
			return err
		}
		return printCleanup(os.Stdout, flags, stale)
	})
}

// segmentReader reads the segments that flags depend on from their facts.
type segmentReader struct {
	tenantID string
	store    events.Store
	found    map[string]*state.Segment // by key
	err      error                     // the first
}

// changed returns when a segment that a flag's rules lead to last changed; zero without one.
func (r *segmentReader) changed(ctx context.Context, flagKey string) (newest time.Time) {
	var f state.Flag
	r.fold(ctx, events.FlagStream(r.tenantID, flagKey), f.Apply)
	var next []string
	for _, rules := range f.Rules {
		next = append(next, state.SegmentsOf(rules)...)
	}
	seen := map[string]bool{}
	for len(next) > 0 {
		key := next[0]
		if next = next[1:]; seen[key] {
			continue
		}
		seen[key] = true
		s := r.segment(ctx, key)
		if s.UpdatedAt.After(newest) {
			newest = s.UpdatedAt
		}
		if !s.Exists {
			continue
		}
		for _, use := range s.Uses {
			next = append(next, use.Key)
		}
	}
	return newest
}

// segment returns the state of a segment, an empty one if it never was.
func (r *segmentReader) segment(ctx context.Context, key string) *state.Segment {
	if s, ok := r.found[key]; ok {
		return s
	}
	s := &state.Segment{}
	r.fold(ctx, events.SegmentStream(r.tenantID, key), s.Apply)
	r.found[key] = s
	return s
}

// fold applies the facts of a stream.
func (r *segmentReader) fold(ctx context.Context, stream string, apply func(events.Recorded)) {
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
	table.Row("FLAG", "LIFECYCLE", "SINCE", "LAST EVALUATED", "SERVES", "TO")
	for _, f := range flags {
		evaluated, lifecycle := "never", f.Lifecycle(stale)
		if f.LastEvaluated != nil {
			evaluated = f.LastEvaluated.UTC().Format(time.RFC3339)
		}
		table.Row(f.Key, string(lifecycle), f.Since().UTC().Format(time.RFC3339), evaluated, servedAlways(f, lifecycle),
			callersOf(f))
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
