package health

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/postgres"
)

// minRoom is the free space on the data folder's disk below which health reports it: two segments of a private
// Postgres's log.
const minRoom = 32 << 20

// fullFor is how long a disk counts as full after a statement failed. On a node that writes nothing, health may
// recover too early.
const fullFor = time.Minute

// Disk detects from statements' errors that the database's disk is full.
type Disk struct{ foundFull atomic.Pointer[time.Time] } // the last time; nil if never

// TraceQueryStart implements pgx.QueryTracer.
func (w *Disk) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (w *Disk) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	w.note(data.Err)
}

func (w *Disk) note(err error) {
	if postgres.DiskFull(err) || errors.Is(err, events.ErrDiskFull) {
		w.foundFull.Store(new(time.Now()))
	}
}

// problems reports a full database disk, and a data folder with little space, unless its name is empty.
func (w *Disk) problems(folder string) (list []string) {
	if at := w.foundFull.Load(); at != nil && time.Since(*at) < fullFor {
		list = append(list, "the disk of the database is full: changes are refused, flags are evaluated")
	}
	var disk syscall.Statfs_t
	if folder != "" && syscall.Statfs(folder, &disk) == nil {
		if room := uint64(disk.Bavail) * uint64(disk.Bsize); room < minRoom { //nolint:unconvert // the types differ between systems
			list = append(list, fmt.Sprintf("the disk of FLAGLEDGER_DATA has %d MiB left", room>>20))
		}
	}
	return list
}
