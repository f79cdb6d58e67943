package main

import (
	"bytes"
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
	return withDatabase(ctx, func(config settings.Config, url string, _ *slog.Logger) error {
		pool, err := node.OpenPool(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		read, stale := queries.New(pool, nil, nil, nil), config.Staleness()
		if err := read.HasTenant(ctx, c.Tenant); err != nil {
			return err
		}
		list, err := read.Cleanup(ctx, c.Tenant, stale, events.Position{}, queries.Page{})
		if err != nil {
			return err
		}
		flags, err := list.All(ctx)
		if err != nil {
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
