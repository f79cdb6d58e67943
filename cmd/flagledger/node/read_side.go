package node

import (
	"context"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/snapshot"
	"flagledger/projections/usage"
	"flagledger/queries"
)

// readSide is what follows the log, and what reads it.
type readSide struct {
	progress *projections.Progress
	snapshot *snapshot.Snapshot
	queries  *queries.Queries
	quotas   *quota.Tenants
	meter    *usage.Meter
}

// newReadSide returns the read side. The snapshot begins with saved, the one on disk, if that has been read.
func newReadSide(c settings.Config, s stores, saved *snapshot.Saved) readSide {
	progress := projections.NewProgress(models.All(), c.WaitTimeout)
	live := snapshot.New(snapshot.Options{
		Shown: func(ctx context.Context, position events.Position) {
			progress.Wait(ctx, position, []string{"flag."})
		},
		File:  c.SnapshotFile(),
		Saved: saved,
		Began: progress.SnapshotBegan,
		Salts: s.salts,
	})
	quotas := &quota.Tenants{
		Live: live, FlagBytes: c.FlagBytes, Limiter: quota.NewLimiter(c.Limits, c.ProxyNetworks, c.Now), Now: c.Now,
	}
	return readSide{
		progress: progress,
		snapshot: live,
		queries:  queries.New(s.pool, s.events, progress.Wait, live.Salt),
		quotas:   quotas,
		meter:    usage.New(s.pool, quotas.Creator, c.Now),
	}
}
