// Command flagledger is the feature-flag service and its tools.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line. Settings come from the environment: see config.go.
type cli struct {
	Serve       serveCommand       `cmd:"" default:"1" help:"Serve the API (the default)."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database to the newest schema."`
	Projections projectionsCommand `cmd:"" help:"Look after the read models."`
	Replay      replayCommand      `cmd:"" help:"Print the facts of a flag, one JSON object a line."`
	Copy        copyCommand        `cmd:"" help:"Copy all facts from one event store to another."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

type projectionsCommand struct {
	List    listCommand    `cmd:"" help:"Name the read models."`
	Status  statusCommand  `cmd:"" help:"Tell how far each read model is, and what it has parked."`
	Rebuild rebuildCommand `cmd:"" help:"Make read models anew from the log, while servers run."`
}

func main() {
	parser := kong.Must(&cli{}, kong.Name("flagledger"), kong.UsageOnError(),
		kong.Description("Feature flags whose every change is a fact. Settings are environment variables; README.md lists them."))
	command, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "flagledger: %v\n", err)
		os.Exit(1)
	}
}
