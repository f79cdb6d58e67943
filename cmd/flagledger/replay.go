package main

import (
	"context"
	"encoding/json"
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
	"flagledger/events/state"
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
		return r.print(ctx, at)
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

	nameless   bool              // the warning that names cannot be read was printed
	incomplete bool              // the warning that facts are unknown was printed
	widths     []int             // of the columns so far
	flag       state.Flag        // the flag so far, if one is replayed
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
		mine:          tenantFilter{cmd.Tenant, map[string]bool{}},
		resources:     map[string]string{},
	}
}

// print prints the state at a moment if --at names one, and the facts otherwise.
func (r *replay) print(ctx context.Context, at queries.Moment) (err error) {
	if r.At != nil {
		err = r.printState(ctx, at)
	} else {
		err = r.printFacts(ctx)
	}
	switch {
	case ctx.Err() == nil:
		return err
	case r.Follow:
		return nil
	default:
		return errors.New("interrupted")
	}
}

// belongs notes a project that the tenant makes, and reports whether a fact is the tenant's.
func (r *replay) belongs(e events.Recorded) bool {
	mine, err := r.mine.belongs(e)
	if err != nil { // a newer release has made the project
		var created events.ProjectCreated
		_ = json.Unmarshal(e.Stored.Data, &created)
		if mine = created.TenantID == r.Tenant; mine {
			r.mine.projects[e.Stream] = true
		}
	}
	return mine
}

const replayPage = 500 // facts that are printed at once

// facts yields the facts that are replayed, page by page in their order, and with --follow without end. For a tenant, it
// reads the whole log.
func (r *replay) facts(ctx context.Context) iter.Seq2[[]events.Recorded, error] {
	return func(yield func([]events.Recorded, error) bool) {
		var list []events.Recorded
		var last events.Revision
		var from events.Position
		if r.stream() != "" {
			head, err := r.store.Head(ctx) // what is appended while the stream is read comes after it
			if err != nil {
				yield(nil, err)
				return
			}
			for e, err := range r.streamFacts(ctx) {
				if err != nil {
					yield(nil, err)
					return
				}
				last = e.Revision
				if list = append(list, e); len(list) == replayPage {
					if !yield(list, nil) {
						return
					}
					list = nil
				}
			}
			if len(list) > 0 && !yield(list, nil) || !r.Follow {
				return
			}
			list, from = nil, head
		}
		found := last > 0
		for page, err := range r.store.Subscribe(ctx, from) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range page.Events {
				if r.stream() == "" && r.belongs(e) || r.stream() == e.Stream && e.Revision > last {
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

// streamFacts yields the facts of the flag or the project, but none of another tenant's project.
func (r *replay) streamFacts(ctx context.Context) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		found := false
		for e, err := range r.store.Read(ctx, r.stream(), 0) {
			if err == nil && !r.belongs(e) {
				break
			}
			found = true
			if !yield(e, err) || err != nil {
				return
			}
		}
		if !found {
			yield(events.Recorded{}, r.notFound())
		}
	}
}
