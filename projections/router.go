package projections

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"flagledger/events"
)

// Run carries on projections until ctx ends, as far as no other node does. Trouble with the database or the store is logged and waited out.
func Run(ctx context.Context, url string, store events.Store, list []Projection, progress *Progress, log *slog.Logger) error {
	var subscribers []*subscriber
	for _, p := range list {
		subscribers = append(subscribers, &subscriber{
			projection: p, schema: liveSchema, url: url, store: store, log: log,
			committed: func(position events.Position) { progress.reached(p.Name, position) },
		})
	}
	return route(ctx, subscribers...)
}

// route runs subscribers and their projections under Watermill's router, until ctx ends or all of them have. The router's own log is left out: what
// went wrong with an event is told when its stream is parked.
func route(ctx context.Context, subscribers ...*subscriber) error {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 5 * time.Second}, watermill.NopLogger{})
	if err != nil {
		return fmt.Errorf("projections: %w", err)
	}
	router.AddMiddleware(
		middleware.Retry{MaxRetries: 2, InitialInterval: 10 * time.Millisecond}.Middleware,
		middleware.Recoverer,
	)
	for _, s := range subscribers {
		router.AddConsumerHandler(s.projection.Name, s.projection.Name, s, handler(s.projection))
	}
	return router.Run(ctx)
}

// handler applies the event of a message. An attempt that fails leaves nothing in the batch.
func handler(p Projection) message.NoPublishHandlerFunc {
	return func(m *message.Message) error {
		w := m.Context().Value(workKey{}).(*work)
		w.batch.QueuedQueries = w.batch.QueuedQueries[:w.start]
		defer func() {
			if cause := recover(); cause != nil {
				w.err = fmt.Errorf("the handler of %s panicked: %v", w.event.Name, cause)
				panic(cause) // the Recoverer's
			}
		}()
		if w.err = w.event.Err; w.err == nil {
			w.err = p.Apply(w.batch, w.event)
		}
		return w.err
	}
}
