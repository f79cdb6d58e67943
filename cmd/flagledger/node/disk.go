package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
	"flagledger/events/postgres"
)

// minRoom is the least room on the disk of the data folder that is not told of: two segments of the log of a private Postgres.
const minRoom = 32 << 20

// diskWatch notices that the disk of the database is full, by the errors of statements, and when it no longer is.
type diskWatch struct{ full atomic.Bool }

// TraceQueryStart implements pgx.QueryTracer.
func (w *diskWatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (w *diskWatch) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	w.note(data.Err)
}

func (w *diskWatch) note(err error) {
	if postgres.DiskFull(err) || errors.Is(err, events.ErrDiskFull) {
		w.full.Store(true)
	}
}

// probe finds out whether a disk that was full still is. The sort needs a few MB there, which it frees at once.
func (w *diskWatch) probe(ctx context.Context, pool *pgxpool.Pool) {
	if !w.full.Load() {
		return
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local work_mem = '64kB'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "select count(*) from (select repeat(n::text, 10) as word from generate_series(1, 100000) n order by word offset 0) sorted")
		return err
	})
	if err == nil {
		w.full.Store(false)
	}
}

// health names a database without room, and a data folder that has little, unless its name is empty.
func (w *diskWatch) health(folder string) (list []string) {
	if w.full.Load() {
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
