package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// replayCommand prints the history of a flag, a segment, a project or a tenant.
type replayCommand struct {
	Tenant  string  `required:"" type:"id" help:"The tenant's id. Without --flag, --segment and --project, all facts of the tenant are printed."`
	Flag    *string `xor:"of" help:"The key of a flag: all flags that have had it are printed."`
	Segment *string `xor:"of" help:"The key of a segment: all segments that have had it are printed."`
	Project *string `xor:"of" type:"id" help:"The id of a project."`
	At      *string `placeholder:"MOMENT" help:"Print the state of the flag, segment or project in place of its facts, as JSON: at a time of RFC 3339, or at a version."`
	Diff    bool    `help:"Print also what each fact changed, before and after."`
	JSON    bool    `name:"json" help:"Print a JSON object a line, for programs."`
}

// Help explains how to use the command.
func (replayCommand) Help() string {
	return "Facts are read from the event store, in their order, while servers run. Times are those at which they were " +
		"recorded, and can be given to --at as they are printed. " +
		"Names of people are today's. A fact of a newer release is shown by its name."
}

// Run prints to stdout.
func (cmd replayCommand) Run(ctx context.Context) error {
	at, err := cmd.moment(time.Now())
	if err != nil {
		return err
	}
	return withStore(ctx, func(_ settings.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		trail, err := node.OpenTrailReader(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer trail.Close()
		return newReplay(cmd, store, trail.Queries, os.Stdout, log).print(ctx, at)
	})
}

// moment checks the options, and reads --at.
func (cmd replayCommand) moment(now time.Time) (m queries.Moment, err error) {
	for name, value := range map[string]*string{"--tenant": &cmd.Tenant, "--flag": cmd.Flag, "--segment": cmd.Segment,
		"--project": cmd.Project, "--at": cmd.At} {
		if value != nil && *value == "" {
			return m, fmt.Errorf("replay: %s is empty", name)
		}
	}
	switch {
	case cmd.At == nil:
		return m, nil
	case cmd.Diff:
		return m, errors.New("replay: --at prints no facts, so it cannot be given with --diff")
	case cmd.stream() == "":
		return m, errors.New("replay: --at needs --flag, --segment or --project")
	}
	if m, err = queries.ParseMoment(*cmd.At, now); err != nil {
		return m, fmt.Errorf("replay: --at %w; it is %q", err, *cmd.At)
	}
	return m, nil
}

// stream is the stream of the flag, segment or project, empty for all of a tenant.
func (cmd replayCommand) stream() string {
	switch {
	case cmd.Flag != nil:
		return events.FlagStream(cmd.Tenant, *cmd.Flag)
	case cmd.Segment != nil:
		return events.SegmentStream(cmd.Tenant, *cmd.Segment)
	case cmd.Project != nil:
		return events.ProjectStream(*cmd.Project)
	}
	return ""
}

// notFound is the error if there are no facts.
func (cmd replayCommand) notFound() error {
	switch {
	case cmd.Flag != nil:
		return fmt.Errorf("the tenant %s never had a flag %s", cmd.Tenant, *cmd.Flag)
	case cmd.Segment != nil:
		return fmt.Errorf("the tenant %s never had a segment %s", cmd.Tenant, *cmd.Segment)
	case cmd.Project != nil:
		return fmt.Errorf("the tenant %s never had a project %s", cmd.Tenant, *cmd.Project)
	}
	return fmt.Errorf("there are no facts of a tenant %s", cmd.Tenant)
}

// replay reads facts and prints them.
type replay struct {
	replayCommand
	store events.Store
	names *queries.Queries
	log   *slog.Logger
	out   io.Writer
	mine  tenantFilter

	nameless   bool              // the warning that names cannot be read was printed
	incomplete bool              // the warning that facts are unknown was printed
	flag       state.Flag        // the flag so far, if one is replayed
	segment    state.Segment     // the segment so far, if one is replayed
	resources  map[string]string // names of projects and OAuth clients by type and id
}

func newReplay(cmd replayCommand, store events.Store, names *queries.Queries, out io.Writer, log *slog.Logger) *replay {
	return &replay{
		replayCommand: cmd,
		store:         store,
		names:         names,
		log:           log,
		out:           out,
		mine:          tenantFilter{cmd.Tenant, map[string]bool{}},
		resources:     map[string]string{},
	}
}

// print prints the state at a moment if --at names one, and the facts otherwise.
func (r *replay) print(ctx context.Context, at queries.Moment) (err error) {
	switch {
	case r.At == nil:
		err = r.printFacts(ctx)
	case r.Flag != nil:
		err = r.printFlag(ctx, at)
	case r.Segment != nil:
		err = r.printSegment(ctx, at)
	default:
		err = r.printProject(ctx, at)
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

const replayPage = 500 // facts that are printed at once

// printFacts prints facts page by page. For a tenant, it reads the whole log.
func (r *replay) printFacts(ctx context.Context) error {
	facts := r.logFacts(ctx)
	if r.stream() != "" {
		facts = r.streamFacts(ctx)
	}
	found := false
	page := make([]describedFact, 0, replayPage)
	for e, err := range facts {
		if err != nil {
			return err
		}
		found = true
		if page = append(page, r.describe(e)); len(page) == replayPage {
			if err := r.printPage(ctx, page); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	if !found {
		return r.notFound()
	}
	return r.printPage(ctx, page)
}

func (r *replay) printPage(ctx context.Context, page []describedFact) error {
	names := r.namesOf(ctx, page)
	if r.JSON {
		return r.printLines(page, names)
	}
	return r.printTable(page, names)
}

// logFacts yields the tenant's facts until the head of the log.
func (r *replay) logFacts(ctx context.Context) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for page, err := range r.store.Subscribe(ctx, events.Position{}) {
			if err != nil {
				yield(events.Recorded{}, err)
				return
			}
			for _, e := range page.Events {
				if r.belongs(e) && !yield(e, nil) {
					return
				}
			}
			if page.Live {
				return
			}
		}
	}
}

// streamFacts yields the facts of the flag, segment or project, but none of another tenant's project.
func (r *replay) streamFacts(ctx context.Context) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for e, err := range r.store.Read(ctx, r.stream(), 0) {
			if err == nil && !r.belongs(e) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// belongs records a project that the tenant creates, and reports whether a fact is the tenant's.
func (r *replay) belongs(e events.Recorded) bool {
	mine, err := r.mine.belongs(e)
	if err != nil { // a newer release has created the project
		var created events.ProjectCreated
		_ = json.Unmarshal(e.Stored.Data, &created)
		if mine = created.TenantID == r.Tenant; mine {
			r.mine.streams[e.Stream] = true
		}
	}
	return mine
}

// write prints JSON, indented unless it is for programs.
func (r *replay) write(text []byte) error {
	if !r.JSON {
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", "  "); err != nil {
			return err
		}
		for line := range bytes.Lines(indented.Bytes()) {
			if err := terminal.PrintJSON(r.out, line); err != nil {
				return err
			}
		}
		return nil
	}
	return terminal.PrintJSON(r.out, text)
}
