package reactions

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// maxLag limits the count of Lag.
const maxLag = 10_000

// Lag counts the events that no node has handled yet, up to 10,000, and returns the age of the first; both are 0 if
// there are none. It opens a subscription while it counts.
func (r *Reactions) Lag(ctx context.Context) (lag int, behind time.Duration, err error) {
	var p events.Position
	err = r.pool.QueryRow(ctx, `select commit, prepare from keep.reactions where engine = $1`, r.store.Engine()).
		Scan(&p.Commit, &p.Prepare)
	if errors.Is(err, pgx.ErrNoRows) { // reactions have not begun
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	head, err := r.store.Head(ctx)
	if err != nil || head.Compare(p) <= 0 {
		return 0, 0, err
	}
	for page, err := range r.store.Subscribe(ctx, p) {
		if err != nil {
			return 0, 0, err
		}
		if lag == 0 && len(page.Events) > 0 {
			behind = max(0, time.Since(page.Events[0].At))
		}
		lag = min(lag+len(page.Events), maxLag)
		if page.Live || lag == maxLag {
			break
		}
	}
	return lag, behind, nil
}
