// Command flagledger is the feature-flag service and its tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"flagledger/cmd/flagledger/client"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/queries"
)

// cli is the command line. Settings come from the environment: see node/config.go.
type cli struct {
	client.Commands

	Serve       serveCommand       `cmd:"" default:"1" help:"Serve the API (the default)."`
	Edge        edgeCommand        `cmd:"" help:"Serve evaluations beside applications, without a database."`
	Migrate     migrateCommand     `cmd:"" help:"Migrate the database to the current schema."`
	Projections projectionsCommand `cmd:"" help:"Manage the read models."`
	Replay      replayCommand      `cmd:"" help:"Print the history of a flag, a segment, a project or a tenant, or the state of one of these at a time."`
	Copy        copyCommand        `cmd:"" help:"Copy all facts from one event store to another."`
	ExportFacts exportFactsCommand `cmd:"" help:"Write facts to a file, as a backup or for another installation."`
	ImportFacts importFactsCommand `cmd:"" help:"Append the missing facts of such a file."`
	Verify      verifyTrailCommand `cmd:"" help:"Check that no fact of a tenant was altered."`
	EraseUser   eraseUserCommand   `cmd:"" help:"Erase the name, the address and the credentials of a person."`
	Jobs        jobsCommand        `cmd:"" help:"Manage the jobs: work that survives a crash, such as mails."`
	Cleanup     cleanupCommand     `cmd:"" help:"Print the flags of a tenant that can be removed, and what can replace them."`
	Plan        planCommand        `cmd:"" help:"Give a tenant a plan, without a payment provider."`
	OpenAPI     openAPICommand     `cmd:"" name:"openapi" help:"Print the OpenAPI document."`
	Completion  completionCommand  `cmd:"" help:"Print the script that completes commands in a shell."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

type projectionsCommand struct {
	List    listProjectionsCommand    `cmd:"" help:"List the read models."`
	Status  projectionStatusCommand   `cmd:"" help:"Print the progress of each read model, and its parked streams."`
	Rebuild rebuildProjectionsCommand `cmd:"" help:"Rebuild read models from the log, while servers run."`
	Verify  verifyProjectionsCommand  `cmd:"" help:"Compare read models with rebuilt ones, while servers run."`
	Parked  parkedCommand             `cmd:"" help:"Manage the parked streams, whose events a read model could not apply."`
}

func main() {
	parser := newParser(&cli{})
	kongcompletion.Register(parser) // which answers a shell, and ends
	command, err := parser.Parse(os.Args[1:])
	if err != nil {
		fail(fmt.Errorf("%w; flagledger --help tells what there is", err))
	}
	ctx, end := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endingSignals()...)
	go func() {
		<-signals
		signal.Ignore(syscall.SIGHUP) // a closed terminal sends it twice, systemd may after SIGTERM
		signal.Stop(signals)          // before the end begins: a second signal of another kind ends the process at once
		end()
	}()
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		fail(err)
	}
}

// newParser returns a parser that reads the command line into a cli.
func newParser(into *cli) *kong.Kong {
	return kong.Must(into, kong.Name("flagledger"),
		kong.Description("Feature flags whose every change is a fact. "+
			"Settings are environment variables; flagledger serve --help lists them."),
		kong.NamedMapper("id", kong.MapperFunc(decodeID)), kong.NamedMapper("time", kong.MapperFunc(decodeTime)))
}

// decodeID reads an id in upper or lower case, as the API does.
func decodeID(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("id", &text); err != nil {
		return err
	}
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	target.SetString(events.CanonicalID(text))
	return nil
}

// decodeTime reads a time in any form of RFC 3339, as the API does.
func decodeTime(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	at, readable := rules.ParseTime(text)
	if !readable {
		return fmt.Errorf("%w; it is %q", queries.ErrNotTime, text)
	}
	target.Set(reflect.ValueOf(at))
	return nil
}

// endingSignals returns the signals that end a command cleanly. A closed terminal sends SIGHUP, unless nohup makes the
// command ignore it.
func endingSignals() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	}
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
}

// fail ends the process with an error.
func fail(err error) {
	if !errors.Is(err, client.ErrOff) {
		fmt.Fprintf(os.Stderr, "flagledger: %s\n", oneLine(err))
	}
	if coded, ok := errors.AsType[*client.CodedError](err); ok {
		os.Exit(coded.Code)
	}
	os.Exit(1)
}

// oneLine formats an error for printing. Database errors have several lines, some repeated; others quote foreign
// files.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return terminal.Printable(strings.Join(lines, " "))
}
