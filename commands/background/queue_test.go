package background

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// running is a queue that is worked off until end is called; it returns how long they then take.
func running() (e *Queue, end func() time.Duration) {
	e = New(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx)
	}()
	synctest.Wait()
	return e, func() time.Duration {
		began := time.Now()
		cancel()
		<-done
		return time.Since(began)
	}
}

func TestWhatIsBegunOrWaitsIsDoneAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, end := running()
		done := make(chan error, 3*workers)
		for range cap(done) {
			e.Enqueue(t.Context(), "wait", func(ctx context.Context) error {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				done <- ctx.Err()
				return nil
			})
		}
		synctest.Wait()
		if took := end(); took != 3*time.Second || len(done) != cap(done) {
			t.Errorf("%d of %d are done within %v", len(done), cap(done), took)
		}
		for range len(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTheEndTakesFiveSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, end := running()
		for range 2 * workers {
			e.Enqueue(t.Context(), "wait", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}
		synctest.Wait()
		if took := end(); took != drainTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(slog.New(slog.DiscardHandler))
		for range 2 * maxQueued {
			e.Enqueue(t.Context(), "do nothing", func(context.Context) error { return nil })
		}
		if len(e.waiting) != maxQueued {
			t.Errorf("%d wait", len(e.waiting))
		}
	})
}
