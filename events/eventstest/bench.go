package eventstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"flagledger/events"
)

// BenchmarkAppend measures appends of one event by a single writer, and by 32 concurrent writers to different streams.
// The store may hold events already.
func BenchmarkAppend(b *testing.B, s events.Store) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var left atomic.Int64
			left.Store(int64(b.N))
			var writing sync.WaitGroup
			b.ResetTimer()
			for range writers {
				writing.Go(func() {
					stream := "project-" + uuid.NewString()
					for revision := events.Revision(0); left.Add(-1) >= 0; revision++ {
						if _, err := s.Append(b.Context(), stream, revision, []events.Event{renamed("x")}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			writing.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchmarkCatchUp measures how fast a new subscription reads 20,000 events. The store must be empty.
func BenchmarkCatchUp(b *testing.B, s events.Store) {
	const streams, each = 200, 100
	for range streams {
		list := make([]events.Event, each)
		for i := range list {
			list[i] = renamed("x")
		}
		if _, err := s.Append(b.Context(), "project-"+uuid.NewString(), 0, list); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := consume(b.Context(), s, streams*each); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*streams*each/b.Elapsed().Seconds(), "events/s")
}

func consume(ctx context.Context, s events.Store, n int) error {
	for page, err := range s.Subscribe(ctx, events.Position{}) {
		if err != nil {
			return err
		}
		if n -= len(page.Events); n <= 0 {
			return nil
		}
	}
	return errors.New("the subscription ended")
}
