package esdbtest

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
)

// faults holds the simulated faults of a server.
type faults struct {
	mu            sync.Mutex
	delay         time.Duration
	delayChanged  chan struct{} // closed when delay changes
	dropped       chan struct{} // closed to drop subscriptions
	dropAfter     int           // events before a subscription is dropped; 0 for never
	thawed        chan struct{} // closed when the server stops hanging; nil if it does not hang
	resetBefore   int           // appends whose connection is reset before they are applied
	resetAfter    int           // appends whose connection is reset after they are applied
	refuseRepeats bool
	omitPositions bool
	omitCreated   bool
	held          map[string]chan struct{} // streams whose appends wait
}

func (f *faults) init() {
	f.delayChanged = make(chan struct{})
	f.dropped = make(chan struct{})
	f.held = map[string]chan struct{}{}
}

// SetDelay delays each response, also pending ones.
func (s *Server) SetDelay(d time.Duration) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.delay = d
	close(s.faults.delayChanged)
	s.faults.delayChanged = make(chan struct{})
}

// ResetAppends breaks all connections at each of the next n appends, before the append is applied, or after it and
// before the response.
func (s *Server) ResetAppends(n int, applied bool) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if applied {
		s.faults.resetAfter = n
	} else {
		s.faults.resetBefore = n
	}
}

// DropSubscriptions ends all subscriptions with an error. Connections stay open.
func (s *Server) DropSubscriptions() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	close(s.faults.dropped)
	s.faults.dropped = make(chan struct{})
}

// DropSubscriptionsAfter drops each subscription after n events.
func (s *Server) DropSubscriptionsAfter(n int) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.dropAfter = n
}

// Freeze makes the server hang like a stopped process: it accepts connections, but responds to nothing until Thaw.
func (s *Server) Freeze() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.thawed == nil {
		s.faults.thawed = make(chan struct{})
	}
}

// Thaw ends Freeze.
func (s *Server) Thaw() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.thawed != nil {
		close(s.faults.thawed)
		s.faults.thawed = nil
	}
}

// frozen waits while the server hangs.
func (f *faults) frozen() {
	f.mu.Lock()
	thawed := f.thawed
	f.mu.Unlock()
	if thawed != nil {
		<-thawed
	}
}

// OmitCreated makes the server omit the creation time of events.
func (s *Server) OmitCreated() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.omitCreated = true
}

// RefuseRepeats makes the server report a repeated append as a conflict.
func (s *Server) RefuseRepeats() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.refuseRepeats = true
}

// OmitPositions makes the server omit the position of an append, as a real one does for a repeated append that is not
// indexed yet.
func (s *Server) OmitPositions() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.omitPositions = true
}

// Hold blocks appends to a stream until release is called.
func (s *Server) Hold(stream string) (release func()) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	held := make(chan struct{})
	s.faults.held[stream] = held
	return func() {
		s.faults.mu.Lock()
		defer s.faults.mu.Unlock()
		delete(s.faults.held, stream)
		close(held)
	}
}

// Inject appends n events of a type to a stream, one by one, as another client would.
func (s *Server) Inject(stream, eventType string, n int) {
	for range n {
		s.log.append(stream, expectation{kind: anything},
			[]proposed{{id: uuid.New(), metadata: meta(eventType), data: []byte("{}")}})
	}
}

// Empty replaces the log with a new one.
func (s *Server) Empty() { s.log.empty() }

// Tombstone deletes a stream for good.
func (s *Server) Tombstone(stream string) { s.log.delete(stream, true) }

func (f *faults) hold(ctx context.Context, stream string) error {
	f.mu.Lock()
	held := f.held[stream]
	f.mu.Unlock()
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take reports whether this append must break the connections.
func (f *faults) take(applied bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &f.resetBefore
	if applied {
		n = &f.resetAfter
	}
	if *n == 0 {
		return false
	}
	*n--
	return true
}

// slow delays a response. It fails if the caller disconnects.
func (f *faults) slow(ctx context.Context) error {
	began := time.Now()
	for {
		f.mu.Lock()
		left, changed := f.delay-time.Since(began), f.delayChanged
		f.mu.Unlock()
		if left <= 0 {
			return nil
		}
		select {
		case <-time.After(left):
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if err := s.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	answer, err := handler(ctx, req)
	if err := s.faults.slow(ctx); err != nil {
		return nil, err
	}
	return answer, err
}

func (s *Server) stream(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	if err := s.admit(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return handler(srv, slowServerStream{stream, &s.faults})
}

type slowServerStream struct {
	grpc.ServerStream
	faults *faults
}

func (s slowServerStream) SendMsg(m any) error {
	if err := s.faults.slow(s.Context()); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}
