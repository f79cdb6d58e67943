package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"flagledger/cmd/flagledger/node"
	"flagledger/events"
	"flagledger/queries"
)

// replayCommand prints the life of a flag, a project or a tenant.
type replayCommand struct {
	Tenant  string  `required:"" type:"id" help:"The tenant's id. Without --flag and --project, all that happened in the tenant is printed."`
	Flag    *string `xor:"of" help:"The key of a flag: all flags that have had it are printed."`
	Project *string `xor:"of" type:"id" help:"The id of a project."`
	At      *string `placeholder:"MOMENT" help:"Print what was so at a moment, in place of the facts: at a time of RFC 3339, or, of a flag or a project, at a version."`
	Diff    bool    `help:"Print also what each fact changed, before and after."`
	Follow  bool    `short:"f" help:"Go on with new facts, until interrupted."`
	JSON    bool    `name:"json" xor:"form" help:"Print a JSON object a line, which is the default where the output is no terminal."`
	Text    bool    `xor:"form" help:"Print for people, which is the default on a terminal. There it has colours, unless NO_COLOR is set."`
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
	terminal := term.IsTerminal(int(os.Stdout.Fd()))
	form := replayForm{json: cmd.JSON || !terminal && !cmd.Text, colour: terminal && coloured(os.Getenv)}
	return withStore(ctx, func(_ node.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		trail, err := node.OpenTrailReader(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer trail.Close()
		r := newReplay(cmd, store, trail.Queries, os.Stdout, form, log)
		if cmd.At != nil {
			return r.printState(ctx, at)
		}
		err = r.printFacts(ctx)
		switch {
		case ctx.Err() == nil:
			return err
		case cmd.Follow:
			return nil
		default:
			return errors.New("interrupted")
		}
	})
}

// moment checks the options, and reads --at.
func (cmd replayCommand) moment(now time.Time) (m queries.Moment, err error) {
	for name, value := range map[string]*string{"--tenant": &cmd.Tenant, "--flag": cmd.Flag, "--project": cmd.Project,
		"--at": cmd.At} {
		if value != nil && *value == "" {
			return m, fmt.Errorf("replay: %s is empty", name)
		}
	}
	if cmd.At == nil {
		return m, nil
	}
	if cmd.Diff || cmd.Follow {
		return m, errors.New("replay: --at prints no facts: it goes without --diff and --follow")
	}
	m, err = queries.ParseMoment(*cmd.At, now)
	switch {
	case err != nil:
		return m, fmt.Errorf("replay: --at %w; it is %q", err, *cmd.At)
	case m.Version > 0 && cmd.stream() == "":
		return m, errors.New("replay: --at must be a time for a tenant, which has no versions")
	}
	return m, nil
}

// stream is the stream of what is replayed, empty for all of a tenant.
func (cmd replayCommand) stream() string {
	switch {
	case cmd.Flag != nil:
		return events.FlagStream(cmd.Tenant, *cmd.Flag)
	case cmd.Project != nil:
		return events.ProjectStream(*cmd.Project)
	}
	return ""
}

// notFound is the error where there are no facts.
func (cmd replayCommand) notFound() error {
	switch {
	case cmd.Flag != nil:
		return fmt.Errorf("the tenant %s never had a flag %s", cmd.Tenant, *cmd.Flag)
	case cmd.Project != nil:
		return fmt.Errorf("the tenant %s never had a project %s", cmd.Tenant, *cmd.Project)
	}
	return fmt.Errorf("there are no facts of a tenant %s", cmd.Tenant)
}

// replayForm is how a replay prints.
type replayForm struct {
	json   bool
	colour bool
}

// replay reads facts and prints them.
type replay struct {
	replayCommand
	store  events.Store
	names  *queries.Queries
	log    *slog.Logger
	form   replayForm
	screen *screen
	mine   tenantFilter

	nameless   bool              // it was told that names cannot be read
	widths     []int             // of the columns so far
	variations map[string]string // their names by id, of one flag
	rules      map[string]string // likewise
	resources  map[string]string // names of projects and OAuth clients by type and id
}

func newReplay(
	cmd replayCommand, store events.Store, names *queries.Queries, out io.Writer, form replayForm, log *slog.Logger,
) *replay {
	return &replay{
		replayCommand: cmd,
		store:         store,
		names:         names,
		log:           log,
		form:          form,
		screen:        newScreen(out, form.colour),
		mine: tenantFilter{
			cmd.Tenant,
			map[string]bool{},
		},
		variations: map[string]string{},
		rules:      map[string]string{},
		resources:  map[string]string{},
	}
}

const replayPage = 500 // facts that are printed at once

// facts yields the facts that are replayed, page by page in their order, and with --follow without end.
func (r *replay) facts(ctx context.Context) iter.Seq2[[]events.Recorded, error] {
	if r.stream() == "" {
		return r.tenantFacts(ctx)
	}
	return func(yield func([]events.Recorded, error) bool) {
		head, err := r.store.Head(ctx) // what is appended while the stream is read comes after it
		if err != nil {
			yield(nil, err)
			return
		}
		var page []events.Recorded
		last := events.Revision(0)
		for e, err := range r.store.Read(ctx, r.stream(), 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			if r.Project != nil && e.Revision == 1 && !r.belongs(e) {
				break // another tenant's
			}
			last = e.Revision
			if page = append(page, e); len(page) == replayPage {
				if !yield(page, nil) {
					return
				}
				page = nil
			}
		}
		if last == 0 {
			yield(nil, r.notFound())
			return
		}
		if !yield(page, nil) || !r.Follow {
			return
		}
		for page, err := range r.store.Subscribe(ctx, head) {
			if err != nil {
				yield(nil, err)
				return
			}
			var list []events.Recorded
			for _, e := range page.Events {
				if e.Stream == r.stream() && e.Revision > last {
					list = append(list, e)
				}
			}
			if len(list) > 0 && !yield(list, nil) {
				return
			}
		}
	}
}

// tenantFacts yields the facts of all streams of the tenant. It reads the whole log, as verify does.
func (r *replay) tenantFacts(ctx context.Context) iter.Seq2[[]events.Recorded, error] {
	return func(yield func([]events.Recorded, error) bool) {
		found := false
		var list []events.Recorded // columns are as wide as what is printed at once
		for page, err := range r.store.Subscribe(ctx, events.Position{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range page.Events {
				if r.belongs(e) {
					list = append(list, e)
				}
			}
			found = found || len(list) > 0
			if len(list) >= replayPage || page.Live && len(list) > 0 {
				if !yield(list, nil) {
					return
				}
				list = nil
			}
			if page.Live && !found {
				yield(nil, r.notFound())
				return
			}
			if page.Live && !r.Follow {
				return
			}
		}
	}
}
