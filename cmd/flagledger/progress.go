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

// showProgress returns a reporter of positions, each under a name, up to total. It draws a bar on a terminal, and logs
// a line every two seconds elsewhere.
func showProgress(doing string, total int64, log *slog.Logger) func(string, events.Position) {
	show := showReaders(doing, 1, total, log)
	return func(name string, reached events.Position) { show(name, reached, 0) }
}

// showReaders is showProgress for some that read the same log, each under its name. The reporter is told also how many
// events one has read since the last time.
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

// progress is how far readers of a log are.
type progress struct {
	readers, total int64
	reached        map[string]int64
	first          int64 // what was done when events began to come
	read           int64 // events, of all readers
	began          time.Time
}

// done is how far the readers are on average.
func (p *progress) done() (n int64) {
	for _, reached := range p.reached {
		n += reached
	}
	return min(n/p.readers, p.total)
}

// rate is how many events a second each reader reads.
func (p *progress) rate() int64 {
	read := p.read / p.readers
	if read == 0 { // not counted: where positions are numbers, as in Postgres, they tell it
		read = p.done()
	}
	return int64(float64(read) / time.Since(p.began).Seconds())
}

// left is how long the rest takes at the pace so far, or "unknown" before there is one.
func (p *progress) left() string {
	done := p.done()
	if done <= p.first && done < p.total {
		return "unknown"
	}
	return time.Duration(float64(time.Since(p.began)) * float64(p.total-done) / float64(max(done-p.first, 1))).
		Round(time.Second).
		String()
}
