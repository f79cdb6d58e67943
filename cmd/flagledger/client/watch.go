package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"flagledger/cmd/flagledger/terminal"
	"flagledger/retry"
)

type watchCommand struct{ environment }

// Run prints changes as they happen. After the loss of a connection it continues without a gap.
func (c watchCommand) Run(ctx context.Context) error {
	api, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	w := &watcher{command: c, api: api}
	err = retry.Run(ctx, func(resetBackoff func()) error { return w.listen(ctx, resetBackoff) }, w.reportLoss)
	if ctx.Err() == nil {
		return err
	}
	return nil // it was interrupted
}

// watcher reads the stream of changes, over as many connections as it takes.
type watcher struct {
	command   watchCommand
	api       *Client
	connected bool
	lost      bool   // which has been reported
	last      string // id of the last event
}

// errEnded is the end of a stream: after an hour, or when a node stops.
var errEnded = errors.New("the stream of changes ended")

// silence is how long a stream may be silent; a service sends something every 15 s.
const silence = time.Minute

// listen reads one connection to its end.
func (w *watcher) listen(ctx context.Context, resetBackoff func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := w.api.StreamFlags(ctx, nil, func(_ context.Context, r *http.Request) error {
		if w.last != "" {
			r.Header.Set("Last-Event-ID", w.last)
		}
		return nil
	})
	if err != nil || response.StatusCode != http.StatusOK {
		_, err := read(response, err)
		if !w.connected || !passes(err) {
			return retry.Permanent(err)
		}
		return err
	}
	defer response.Body.Close()
	if !w.connected {
		fmt.Fprintf(os.Stderr, "Watching %s at %s, until interrupted.\n", terminal.Printable(w.command.name()), w.api.Server)
	}
	w.connected, w.lost = true, false
	resetBackoff()
	alive := time.AfterFunc(silence, cancel)
	defer alive.Stop()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		alive.Reset(silence)
		if id, ok := bytes.CutPrefix(lines.Bytes(), []byte("id: ")); ok {
			w.last = string(id)
		}
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if err := w.print(data); err != nil {
				return retry.Permanent(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errEnded
}

// passes reports whether a later attempt may succeed.
func passes(err error) bool {
	refused, ok := errors.AsType[*refusal](err)
	return !errors.Is(err, errNotSignedIn) &&
		(!ok || refused.status >= 500 || refused.status == http.StatusTooManyRequests)
}

// reportLoss reports once that a connection is lost.
func (w *watcher) reportLoss(err error, _ time.Duration) {
	if !w.lost && !errors.Is(err, errEnded) {
		w.lost = true
		fmt.Fprintf(os.Stderr, "The connection is lost, trying again: %s\n", terminal.Printable(err.Error()))
	}
}

// print prints an event: a line for each flag that changed.
func (w *watcher) print(data []byte) error {
	if w.command.JSON {
		return terminal.PrintJSON(os.Stdout, data)
	}
	var e StreamEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("the service sends an event that is not JSON: %w", err)
	}
	if e.Type != "refetchEvaluation" {
		return nil
	}
	var at time.Time
	if e.LastModified != nil {
		at = time.Unix(*e.LastModified, 0)
	}
	flags := []ChangedFlag{{Key: "any flag may have changed"}}
	if e.Flags != nil {
		flags = *e.Flags
	}
	for _, f := range flags {
		line := at.UTC().Format(time.RFC3339) + "  " + f.Key
		if f.Version > 0 {
			line += fmt.Sprintf("  version %d", f.Version)
		}
		if f.Deleted != nil && *f.Deleted {
			line += "  deleted"
		}
		if f.Environment != nil {
			line += "  in " + *f.Environment
		}
		if _, err := fmt.Println(terminal.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
