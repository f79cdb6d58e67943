package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"flagledger/events"
)

// ErrCredentials reports that the server refused the connection string's credentials, or requires some.
var ErrCredentials = errors.New("the server refused the credentials")

// refusalLogInterval limits how often a Store logs refused credentials, because each call and subscription gets the
// refusal.
const refusalLogInterval = time.Minute

func unavailable(cause error) error { return fmt.Errorf("%w: %w", events.ErrUnavailable, cause) }

// classify marks an error of the client as events.ErrUnavailable, unless the server has refused the call for good.
// Refused credentials are ErrCredentials and events.ErrUnavailable: calls succeed again once the server accepts them.
func (s *Store) classify(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return unavailable(ctx.Err())
	case status.Code(err) == codes.Unauthenticated, status.Code(err) == codes.PermissionDenied:
		refusal := s.refusal(status.Code(err))
		s.logRefusal(refusal)
		return unavailable(refusal)
	case final(err):
		return err
	case status.Code(err) == codes.DeadlineExceeded:
		return unavailable(fmt.Errorf("%w: %w", context.DeadlineExceeded, err))
	default:
		return unavailable(err)
	}
}

// refusal is an ErrCredentials that says what is wrong with the credentials, without containing them.
type refusal struct{ why string }

func (r *refusal) Error() string { return ErrCredentials.Error() + ": " + r.why }

func (r *refusal) Is(target error) bool { return target == ErrCredentials }

func (s *Store) refusal(code codes.Code) *refusal {
	switch {
	case s.config.Username == "" && s.config.DisableTLS:
		return &refusal{
			"the connection string has none, and the client sends them over TLS alone: it needs a user, a password and tls=true",
		}
	case s.config.Username == "":
		return &refusal{"the connection string has none"}
	case code == codes.Unauthenticated:
		return &refusal{"wrong user or password"}
	default:
		return &refusal{"the user may not read the log ($all) or not append to it"}
	}
}

func (s *Store) logRefusal(refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.refusalLogged) >= refusalLogInterval {
		s.refusalLogged = now
		s.log.Error("the event store cannot be used", "err", refusal)
	}
}

// final reports whether an error is the server's refusal. Other errors leave the outcome unknown, such as the client's
// "EOF" for a connection that broke while sending.
func final(err error) bool {
	if errors.Is(err, io.EOF) {
		return false
	}
	if e, ok := errors.AsType[*esdb.Error](err); ok {
		switch e.Code() {
		case esdb.ErrorCodeWrongExpectedVersion, esdb.ErrorCodeStreamDeleted:
			return true
		case esdb.ErrorCodeNotLeader:
			return false
		}
	}
	switch status.Code(err) {
	case codes.InvalidArgument,
		codes.NotFound,
		codes.AlreadyExists,
		codes.FailedPrecondition,
		codes.OutOfRange,
		codes.Unimplemented:
		return true
	}
	return false
}
