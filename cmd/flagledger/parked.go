package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

type parkedCommand struct {
	List  parkedListCommand  `cmd:"" help:"List the parked streams."`
	Show  parkedShowCommand  `cmd:"" help:"Print why a read model has parked a stream, and the fact that it could not apply."`
	Retry parkedRetryCommand `cmd:"" help:"Apply the missed facts of parked streams, and follow them again."`
}

type parkedListCommand struct{}

// Run prints a line for each parked stream.
func (parkedListCommand) Run(ctx context.Context) error {
	return withDatabase(ctx, func(_ settings.Config, url string, _ *slog.Logger) error {
		pool, err := node.OpenPool(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		table := terminal.NewTable(os.Stdout)
		table.Row("NAME", "STREAM", "VERSION", "SINCE", "ERROR")
		for _, p := range models.All() {
			parked, err := p.Parked(ctx, pool)
			if err != nil {
				return err
			}
			for _, s := range parked {
				table.Row(p.Name, s.Stream, fmt.Sprint(s.Revision), s.At.UTC().Format(time.RFC3339), s.Error)
			}
		}
		return table.Flush()
	})
}

// oneParked calls a function with a read model and its parked streams.
func oneParked(
	ctx context.Context, name string,
	use func(p projections.Projection, parked []projections.Parked, url string, store events.Store) error,
) error {
	list, err := models.ByName([]string{name})
	if err != nil {
		return err
	}
	return withStore(ctx, func(_ settings.Config, url string, store events.Store, _ *slog.Logger) error {
		pool, err := node.OpenPool(ctx, url)
		if err != nil {
			return err
		}
		parked, err := func(pool *pgxpool.Pool) ([]projections.Parked, error) {
			defer pool.Close()
			return list[0].Parked(ctx, pool)
		}(pool)
		if err != nil {
			return err
		}
		return use(list[0], parked, url, store)
	})
}

type parkedShowCommand struct {
	Name   string `arg:"" help:"The read model."`
	Stream string `arg:"" help:"The stream."`
}

// Run prints when and why the stream was parked, and the fact as it is stored.
func (s parkedShowCommand) Run(ctx context.Context) error {
	return oneParked(
		ctx,
		s.Name,
		func(p projections.Projection, parked []projections.Parked, _ string, store events.Store) error {
			i := slices.IndexFunc(parked, func(p projections.Parked) bool { return p.Stream == s.Stream })
			if i < 0 {
				return fmt.Errorf("%s: %w: %s", p.Name, projections.ErrNotParked, s.Stream)
			}
			fmt.Printf("%s has parked %s at version %d since %s: %s\n", p.Name, terminal.Printable(s.Stream), parked[i].Revision,
				parked[i].At.UTC().Format(time.RFC3339), terminal.Printable(parked[i].Error))
			for e, err := range store.Read(ctx, s.Stream, parked[i].Revision) {
				if err != nil {
					return err
				}
				line, err := storedFact(e)
				if err != nil {
					return err
				}
				_, err = fmt.Printf("%s\n", line)
				return err
			}
			return nil
		},
	)
}

// storedFact returns a stored fact as printable JSON.
func storedFact(e events.Recorded) ([]byte, error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	err := out.Encode(struct {
		Version  events.Revision `json:"version"`
		Fact     string          `json:"fact"`
		Shape    int             `json:"shape"`
		ID       string          `json:"id"`
		Data     any             `json:"data"`
		Metadata any             `json:"metadata"`
	}{e.Revision, e.Name, e.Stored.Version, e.ID.String(), stored(e.Stored.Data), stored(e.Stored.Metadata)})
	return terminal.PrintableJSON(bytes.TrimSpace(text.Bytes())), err
}

// stored is JSON as it is, or what is none as a string.
func stored(text []byte) any {
	if json.Valid(text) {
		return json.RawMessage(text)
	}
	return string(text)
}

type parkedRetryCommand struct {
	Name    string   `arg:"" help:"The read model."`
	Streams []string `arg:"" optional:"" name:"stream" help:"The streams; by default all that it has parked."`
}

// Run retries streams, each by itself.
func (r parkedRetryCommand) Run(ctx context.Context) error {
	return oneParked(
		ctx,
		r.Name,
		func(p projections.Projection, parked []projections.Parked, url string, store events.Store) (err error) {
			streams := r.Streams
			if len(streams) == 0 {
				for _, s := range parked {
					streams = append(streams, s.Stream)
				}
			}
			for _, stream := range streams {
				failed := projections.Retry(ctx, url, store, p, stream)
				if failed == nil {
					fmt.Printf("%s follows %s again\n", p.Name, terminal.Printable(stream))
					continue
				}
				err = errors.Join(err, fmt.Errorf("%s, stream %s: %w", p.Name, stream, failed))
			}
			return err
		},
	)
}
