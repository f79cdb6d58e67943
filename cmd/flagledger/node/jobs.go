package node

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/idempotency"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/metering"
)

// upkeep is what one node does at regular times for all.
func upkeep(requests *idempotency.Requests, meter *metering.Meter, links *jobs.Links, box *inbox.Inbox, pool *pgxpool.Pool, now func() time.Time) []jobs.Task {
	invitations := jobs.NewInvitationLimit(pool)
	return []jobs.Task{
		{Name: "remove old Idempotency-Keys", Every: 10 * time.Minute, Do: requests.RemoveOld},
		{Name: "remove expired tokens", Every: 10 * time.Minute, Do: func(ctx context.Context) error { return local.RemoveExpired(ctx, pool, now()) }},
		{Name: "remove old requests for links", Every: 10 * time.Minute, Do: func(ctx context.Context) error { return links.RemoveOld(ctx, now()) }},
		{Name: "remove old places of invitations", Every: 10 * time.Minute, Do: func(ctx context.Context) error { return invitations.RemoveOld(ctx, now()) }},
		{Name: "remove old notifications", Every: time.Hour, Do: box.RemoveOld},
		{Name: "add up the evaluations of past months", Every: 6 * time.Hour, Do: meter.AddUp},
	}
}
