package projections

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// runConnections is the number of connections for transactions that a node's projections share.
const runConnections = 2

// Connections is the most database connections of Run beside the store's subscriptions: one for locks, the rest for
// transactions.
const Connections = 1 + runConnections

// Subscriptions is the most subscriptions of Run and Statuses: the latest pages, catching up, and measuring the lag.
const Subscriptions = 3

// Run runs the projections that no other node runs, until ctx ends, and updates progress also from the others. It logs
// errors of the database or the store and retries.
func Run(
	ctx context.Context, url string, store events.Store, list []Projection, progress *Progress, log *slog.Logger,
) error {
	p, err := newProcess(url, projectorName, store, runConnections, log)
	if err != nil {
		return err
	}
	p.session.listen = func(ctx context.Context, conn *pgx.Conn) error { return progress.subscribe(ctx, conn, store) }
	p.session.notified = progress.notified
	p.session.broken = func() {
		progress.lost()
		p.connections.pool.Reset()
	}
	var subscribers []*subscriber
	for _, projection := range list {
		subscribers = append(subscribers, &subscriber{
			process: p, projection: projection, schema: liveSchema,
			committed: func(c events.LogPosition) { progress.reached(projection.Name, c.LogID, c.Position) },
			resumed:   func(c events.LogPosition) { progress.resumed(projection.Name, c.LogID, c.Position) },
			failed:    func(failed bool) { progress.failed(projection.Name, failed) },
		})
	}
	return p.route(ctx, subscribers...)
}

func newProcess(url, name string, store events.Store, atMost int32, log *slog.Logger) (*process, error) {
	connections, err := openConnections(url, name, atMost)
	if err != nil {
		return nil, fmt.Errorf("projections: %w", err)
	}
	return &process{
		store:       store,
		log:         log,
		feed:        newFeed(store, log),
		connections: connections,
		session: &session{
			url:      url,
			log:      log,
			claims:   map[*claim]struct{}{},
			broken:   connections.pool.Reset,
			notified: func(string) {},
		},
	}, nil
}

// route runs subscribers under Watermill's router until ctx or all of them end. The router logs nothing: a failed
// event is logged when its stream is parked.
func (p *process) route(ctx context.Context, subscribers ...*subscriber) error {
	defer p.connections.pool.Close()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 5 * time.Second}, watermill.NopLogger{})
	if err != nil {
		return fmt.Errorf("projections: %w", err)
	}
	router.AddMiddleware(middleware.Retry{MaxRetries: 2, InitialInterval: 10 * time.Millisecond}.Middleware,
		middleware.Recoverer)
	for _, s := range subscribers {
		router.AddConsumerHandler(s.projection.Name, s.projection.Name, s, p.handle)
	}
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { p.feed.run(ctx) })
	parts.Go(func() { p.session.run(ctx) })
	if p.traffic != nil {
		parts.Go(func() { p.traffic.watch(ctx) })
	}
	err = router.Run(ctx)
	cancel()
	parts.Wait()
	p.ending.Wait()
	return err
}

// handle applies the events of a message, or continues with the one that failed. A failed attempt adds nothing to the
// batch.
func (p *process) handle(m *message.Message) error {
	w := m.Context().Value(workKey{}).(*work)
	for len(w.events) > 0 {
		start := w.batch.mark()
		if w.err = p.applyFirst(w); w.err != nil {
			w.batch.truncate(start)
			return w.err
		}
		w.events = w.events[1:]
	}
	return nil
}

func (p *process) applyFirst(w *work) error {
	if len(w.events[0].Stored.Data) >= largeEvent {
		p.large.Lock()
		defer p.large.Unlock()
	}
	return applyEvent(w.apply, w.batch, w.events[0])
}
