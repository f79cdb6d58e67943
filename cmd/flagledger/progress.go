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

// showProgress returns a reporter of positions up to total, each with a name. It draws a bar on a terminal, and logs a
// line every two seconds elsewhere.
func showProgress(doing string, total int64, log *slog.Logger) func(string, events.Position) {
	show := showReaders(doing, 1, total, log)
	return func(name string, reached events.Position) { show(name, reached, 0) }
}

// showReaders works like showProgress for several readers of a log. Its reporter also takes the number of events read
// since the last call.
func showReaders(
	doing string, readers int, total int64, log *slog.Logger,
) func(name string, reached events.Position, read int) {
	var mu sync.Mutex
	p := progress{readers: int64(readers), total: total, reached: map[string]int64{}, began: time.Now()}
	advance := func() {}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(true),
			progressbar.OptionOnCompletion(func() { fmt.Fprintln(os.Stderr) }))
		advance = func() {
			bar.Describe(fmt.Sprintf("%s, %d events/s", doing, p.rate()))
			_ = bar.Set64(p.done())
		}
	} else {
		last := time.Now()
		advance = func() {
			if time.Since(last) >= logInterval {
				last = time.Now()
				log.Info(doing, "done", p.done(), "of", total, "eventsPerSecond", p.rate(), "left", p.left())
			}
		}
	}
	return func(name string, reached events.Position, read int) {
		mu.Lock()
		defer mu.Unlock()
		if p.reached[name] = int64(reached.Commit); read > 0 && p.read == 0 {
			p.first = p.done()
		}
		p.read += int64(read)
		advance()
	}
}

// progress tracks how far readers of a log are.
type progress struct {
	readers, total int64
	reached        map[string]int64
	first          int64 // done before events came
	read           int64 // events, of all readers
	began          time.Time
}

// done returns the readers' average progress.
func (p *progress) done() (n int64) {
	for _, reached := range p.reached {
		n += reached
	}
	return min(n/p.readers, p.total)
}

// rate returns the events a second of each reader.
func (p *progress) rate() int64 {
	read := p.read / p.readers
	if read == 0 { // not counted: in Postgres, positions count events
		read = p.done()
	}
	return int64(float64(read) / time.Since(p.began).Seconds())
}

// left returns the remaining time at the current rate, or "unknown".
func (p *progress) left() string {
	done := p.done()
	if done <= p.first && done < p.total {
		return "unknown"
	}
	return time.Duration(float64(time.Since(p.began)) * float64(p.total-done) / float64(max(done-p.first, 1))).
		Round(time.Second).
		String()
}
