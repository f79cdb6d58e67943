package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"flagledger/events"
)

// diskCopy is the copy of a snapshot on disk: where the snapshot begins at a start, and what it serves while the event
// store cannot be reached.
type diskCopy struct {
	path  string
	saved *Saved // the file, where it was read before Run; nil from then on
	began func(events.LogPosition)

	// Only Run and what it starts use these.
	savedUpTo   events.Position // what the file holds
	unconfirmed bool            // it is not known yet whether the log is the file's
	size        int64

	written  atomic.Pointer[time.Time] // when the file that the snapshot began with was written
	otherLog atomic.Bool
	trouble  atomic.Pointer[string]
}

const (
	// minSaveInterval is the least time between two files.
	minSaveInterval = 10 * time.Second
	// saveRate is how many bytes a second are written on average: a file of 1 GB every quarter of an hour.
	saveRate = 1 << 20
	// pauseFactor is the ratio of pauses to writing: a save takes a fifth of one core.
	pauseFactor  = 4
	maxSavePause = time.Second
	// abandonedAfter is the age from which a half-written file counts as that of a dead process.
	abandonedAfter = time.Hour

	askTimeout = 2 * time.Second
	// serveTimeout is the length of an outage of the event store after which the file is served.
	serveTimeout  = 3 * time.Second
	serveInterval = 250 * time.Millisecond
)

// begin takes in the file, unless there is none or it cannot be used.
func (s *Snapshot) begin(ctx context.Context, store events.Store, log *slog.Logger) {
	d, started := s.copy, time.Now()
	d.removeAbandoned()
	saved, confirmed, err := d.load(ctx, store)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		log.Warn("the snapshot on disk is ignored: the log is read from its beginning", "because", err)
		d.trouble.Store(new("the snapshot on disk was ignored: " + withoutPath(err)))
		return
	}
	s.adopt(saved)
	d.savedUpTo, d.size, d.unconfirmed = saved.Checkpoint.Position, saved.size, !confirmed
	d.written.Store(&saved.Written)
	d.began(saved.Checkpoint)
	log.Info("the snapshot begins with its copy on disk", "written", saved.Written, "position", saved.Checkpoint.Position,
		"took", time.Since(started))
	if !confirmed {
		s.serveCopy(log)
	}
}

// load returns what the file holds, and whether the log is known to be the file's. The error is that of checkLog or of
// ReadSaved.
func (d *diskCopy) load(ctx context.Context, store events.Store) (saved *Saved, confirmed bool, err error) {
	check := func(h header) (err error) {
		confirmed, err = checkLog(ctx, store, h.Checkpoint)
		return err
	}
	if saved, d.saved = d.saved, nil; saved != nil {
		err = check(saved.header)
	} else {
		saved, err = readFile(ctx, d.path, check)
	}
	return saved, confirmed, err
}

// serveCopy makes a snapshot ready that holds what its copy on disk does.
func (s *Snapshot) serveCopy(log *slog.Logger) {
	log.Warn("the event store cannot be reached: flags are evaluated as the snapshot on disk has them",
		"written", s.copy.written.Load())
	s.becomeReady()
}

// checkLog returns errOtherLog for a file of another log than a store's. confirmed is false if the store could not be
// asked within serveTimeout.
func checkLog(ctx context.Context, store events.Store, of events.LogPosition) (confirmed bool, err error) {
	if of.Engine != store.Engine() {
		return false, errOtherLog
	}
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	for {
		held, err := holds(ctx, store, of)
		if err == nil && !held {
			return false, errOtherLog
		}
		if err == nil {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(serveInterval):
		}
	}
}

// holds reports whether a store's log holds all up to a checkpoint.
func holds(ctx context.Context, store events.Store, c events.LogPosition) (bool, error) {
	log, err := store.Log(ctx)
	if err != nil {
		return false, err
	}
	return log.Holds(ctx, store, c)
}

// adopt takes what a file holds. The snapshot must be empty.
func (s *Snapshot) adopt(saved *Saved) {
	c, from := saved.Checkpoint, saved.state
	s.applying.Lock()
	defer s.applying.Unlock()
	from.salts.known.Range(func(id string, saved salt) bool {
		var ok bool
		if saved.plain, ok = s.salts.decrypt(id, saved.encrypted); ok || saved.encrypted == nil {
			s.salts.known.Store(id, saved)
		}
		return true
	})
	from.tenants.Range(func(id string, t *Tenant) bool {
		t.showRequired()
		s.addSalts(t)
		s.tenants.Store(id, t)
		t.flagsChanged.Store(&c.Position)
		s.created.add(t.Creator(), t)
		if len(t.dependents.all()) > 0 {
			s.broken.mark(t)
		}
		for _, key := range t.state.Load().EvaluationKeys {
			s.addEvaluationKey(t, key)
		}
		t.projects.Range(func(project string, _ *project) bool {
			s.projects[project] = t
			return true
		})
		return true
	})
	from.users.Range(func(id string, u *User) bool {
		s.users.Store(id, u)
		return true
	})
	from.clients.Range(func(id string, c *Client) bool {
		s.clients.Store(id, c)
		return true
	})
	from.ended.Range(func(of session, until time.Time) bool {
		s.ended.Store(of, until)
		return true
	})
	s.setLogID(c.LogID)
	s.last = c.Last
	s.position.Store(&c.Position)
	s.changes.begin(c.Position)
}

// confirm returns an error until it is known that the log is the one that the snapshot began with, and if it is not.
func (s *Snapshot) confirm(ctx context.Context, store events.Store, log *slog.Logger) error {
	d := s.copy
	if d == nil || !d.unconfirmed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	held, err := holds(ctx, store,
		events.LogPosition{Engine: s.engine, LogID: s.logID, Position: s.Position(), Last: s.last})
	if err != nil {
		return err
	}
	if d.unconfirmed = !held; d.unconfirmed {
		if !d.otherLog.Swap(true) {
			log.Error(
				"the event store holds another log than the snapshot on disk: flags are evaluated as that has them until the " +
					"service is restarted",
			)
		}
		return errOtherLog
	}
	return nil
}

// serveIfUnreachable calls serveCopy when the event store cannot be reached for a while before the snapshot is ready.
func (s *Snapshot) serveIfUnreachable(ctx context.Context, store events.Store, log *slog.Logger) {
	if s.copy.written.Load() == nil {
		return
	}
	tick := time.NewTicker(serveInterval)
	defer tick.Stop()
	var since time.Time // it could not be reached
	for {
		select {
		case <-s.ready:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		_, err := store.Head(asking)
		cancel()
		switch {
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		if err != nil && time.Since(since) >= serveTimeout {
			s.serveCopy(log)
			return
		}
	}
}

// saveFromTimeToTime writes the file from time to time until ctx ends, if there is something new.
func (d *diskCopy) saveFromTimeToTime(ctx context.Context, s *Snapshot, log *slog.Logger) {
	pause := func(took time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pauseFactor*took, maxSavePause)):
			return nil
		}
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		if s.live.Load() {
			d.save(s, pause, log)
		}
		wait := max(minSaveInterval, time.Duration(d.size/saveRate)*time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// save writes the file if there is something new.
func (d *diskCopy) save(s *Snapshot, pause func(time.Duration) error, log *slog.Logger) {
	if s.Position() == d.savedUpTo {
		return
	}
	all := s.copyContents()
	if all == nil || all.Checkpoint.LogID == "" {
		return
	}
	size, err := all.write(d.path, pause)
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		log.Warn("the snapshot could not be written to disk; the next start takes longer", "err", err)
		d.trouble.Store(new("the snapshot could not be written to disk: " + withoutPath(err)))
	default:
		d.savedUpTo, d.size = all.Checkpoint.Position, size
		d.trouble.Store(nil)
	}
}

// removeAbandoned removes what processes that died were writing.
func (d *diskCopy) removeAbandoned() {
	left, _ := filepath.Glob(d.path + temporary)
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(path)
		}
	}
}

// withoutPath is for /health, which anyone may read.
func withoutPath(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return err.Error()
}

// FromDisk returns when the copy was written that evaluations use, and false where none is used, or all of the log has
// been read since the start.
func (s *Snapshot) FromDisk() (written time.Time, from bool) {
	if s.copy == nil || s.live.Load() {
		return written, false
	}
	if at := s.copy.written.Load(); at != nil {
		return *at, true
	}
	return written, false
}

// Troubles lists what is out of order with the copy on disk, with what flags depend on, and with salts.
func (s *Snapshot) Troubles(now time.Time) (list []string) {
	if n := s.BrokenFlags(); n > 0 {
		list = append(list, fmt.Sprintf("%d flags depend on segments or flags that are missing, in a cycle, or too many: "+
			"GET of each flag shows its problems", n))
	}
	if s.salts.failed.Load() {
		list = append(list, "private segments match nobody by their lists: their salts cannot be loaded")
	}
	if s.copy == nil {
		return list
	}
	if written, from := s.FromDisk(); from {
		list = append(
			list,
			fmt.Sprintf(
				"flags are evaluated as they were %v ago, when the snapshot on disk was written: the event store has not been "+
					"reached since the start",
				max(0, now.Sub(written)).Round(time.Second),
			),
		)
	}
	if s.copy.otherLog.Load() {
		list = append(list,
			"the event store holds another log than the snapshot on disk: the service must be restarted to evaluate that log")
	}
	if trouble := s.copy.trouble.Load(); trouble != nil {
		list = append(list, *trouble)
	}
	return list
}
