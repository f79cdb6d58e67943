package main

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"flagledger/events"
)

const logInterval = 2 * time.Second

// showProgress returns a reporter of positions, each under a name, which add up to total. It draws a bar on a terminal, and logs a line every two
// seconds elsewhere.
func showProgress(doing string, total int64, log *slog.Logger) func(string, events.Position) {
	var mu sync.Mutex
	reached := map[string]int64{}
	sum := func() (n int64) {
		for _, r := range reached {
			n += r
		}
		return min(n, total)
	}
	advance := func(int64) {}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("events"), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(true),
			progressbar.OptionOnCompletion(func() { fmt.Fprintln(os.Stderr) }))
		advance = func(n int64) { _ = bar.Set64(n) }
	} else {
		last := time.Now()
		advance = func(n int64) {
			if time.Since(last) >= logInterval {
				last = time.Now()
				log.Info(doing, "done", n, "of", total)
			}
		}
	}
	return func(name string, position events.Position) {
		mu.Lock()
		defer mu.Unlock()
		reached[name] = int64(position.Commit)
		advance(sum())
	}
}
