package flagd

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	v1 "buf.build/gen/go/open-feature/flagd/protocolbuffers/go/flagd/sync/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"flagledger/events"
	"flagledger/http/rest"
	definitions "flagledger/projections/snapshot/flagd"
	"flagledger/projections/usage"
)

// admit admits the caller to the flags that it selects. The header of the selector precedes the field.
func (a *API) admit(ctx context.Context, field string) (*rest.Synced, documentKey, error) {
	r := callOf(ctx).request
	text := field
	if sent := r.Header.Values(selectorHeader); len(sent) > 0 {
		text = sent[0]
	}
	s, err := parseSelector(text)
	if err != nil {
		return nil, documentKey{}, status.Error(codes.InvalidArgument, err.Error())
	}
	p, err := a.AdmitSync(r, s.environment)
	if err != nil {
		return nil, documentKey{}, statusOf(err)
	}
	if _, found := p.Tenant.ProjectFlags(s.project); s.project != "" && !found {
		return nil, documentKey{}, status.Error(codes.NotFound, "the tenant has no project with the id in flagd-selector")
	}
	return p, documentKey{
		definitions.Set{
			TenantID: p.Tenant.ID(), Environment: p.Environment.EnvironmentRef, ProjectID: s.project, Tag: s.tag,
		},
		definitions.DialectOf(r.UserAgent()),
	}, nil
}

// statusOf returns the status for a problem.
func statusOf(err error) error {
	problem, ok := errors.AsType[*rest.Problem](err)
	if !ok {
		return status.Error(codes.Internal, "the service has failed")
	}
	code := codes.Internal
	switch problem.Status {
	case http.StatusUnauthorized:
		code = codes.Unauthenticated
	case http.StatusForbidden:
		code = codes.PermissionDenied
	case http.StatusNotFound:
		code = codes.NotFound
	case http.StatusTooManyRequests:
		code = codes.ResourceExhausted
	case http.StatusServiceUnavailable:
		code = codes.Unavailable
	}
	return status.Error(code, problem.Detail)
}

// SyncFlags sends all flags that the caller selects, at once and after each change. It never ends without an error:
// some providers would not connect again.
func (a *API) SyncFlags(in *v1.SyncFlagsRequest, out grpc.ServerStreamingServer[v1.SyncFlagsResponse]) error {
	ctx := out.Context()
	p, key, err := a.admit(ctx, in.GetSelector())
	if err != nil {
		return err
	}
	owner := a.TenantQuota(p.Tenant)
	if !a.streams.Take(owner, maxStreams) {
		return status.Errorf(codes.ResourceExhausted, "%d streams are open already, which is the limit", maxStreams)
	}
	defer a.streams.Leave(owner)
	a.open.Inc()
	defer a.open.Dec()
	s := &stream{API: a, p: p, out: out, document: a.documents.open(key, owner)}
	defer a.documents.close(s.document)
	return s.run(ctx)
}

// stream is an open SyncFlags.
type stream struct {
	*API
	p        *rest.Synced
	out      grpc.ServerStream
	document *document
	sent     *madeDocument
}

var errStopping = status.Error(codes.Unavailable, "the node is stopping: connect again")

func (s *stream) run(ctx context.Context) error {
	listener := s.changes.Listen(s.p.Tenant, s.p.Environment.ID, math.MaxInt)
	defer listener.Close()
	recheck := time.NewTimer(s.untilRecheck())
	defer recheck.Stop()
	defer func() { s.documents.release(s.sent) }()
	update := listener.Next()
	if err := s.send(ctx, s.p.Tenant.FlagsChanged()); err != nil {
		return err
	}
	for {
		if err := s.await(ctx, update.More, recheck.C); err != nil {
			return err
		}
		recheck.Reset(max(time.Second, s.untilRecheck()))
		if err := s.await(ctx, nil, time.After(batchDelay+update.Turn)); err != nil {
			return err
		}
		update = listener.Next()
		if err := s.p.Refused(); err != nil { // after Next, whose More tells of later changes of access
			return statusOf(err)
		}
		need := update.Position
		switch n := len(update.Changes); {
		case update.Gap:
		case n == 0:
			continue
		default:
			need = update.Changes[n-1].Position
		}
		if err := s.send(ctx, need); err != nil {
			return err
		}
	}
}

// untilRecheck returns the time until the caller's access is checked: once it ends, or after a while.
func (s *stream) untilRecheck() time.Duration {
	return min(recheckInterval, s.AccessEnd(s.p.Credential).Sub(s.Now()))
}

// await waits for a change or for a time.
func (s *stream) await(ctx context.Context, more <-chan struct{}, timer <-chan time.Time) error {
	select {
	case <-more:
		return nil
	case <-timer:
		return nil
	case <-s.ending:
		return errStopping
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// send sends the document with all changes up to a position, unless the client has it already.
func (s *stream) send(ctx context.Context, need events.Position) error {
	made, err := s.current(ctx, s.document, s.p.Principal, need)
	if err != nil {
		return err
	}
	if s.sent == made {
		s.documents.release(made)
		return nil
	}
	err = s.out.SendMsg(made.message) // it returns once the message before is written
	s.documents.release(s.sent)
	s.sent = made
	if err == nil {
		s.count(s.p.Principal, made)
	}
	return err
}

// count counts a message as a prefetch of its flags.
func (a *API) count(p *rest.Principal, made *madeDocument) {
	fetched := usage.Call{All: true}
	for _, f := range made.flags {
		fetched.Add(f, nil)
	}
	a.Counter.CountCall(&fetched, p.Tenant.ID(), p.Environment.ID, p.ClientID())
}

// FetchAllFlags answers with what SyncFlags would send first: with the same bytes, which answerUnary sends.
func (a *API) FetchAllFlags(ctx context.Context, in *v1.FetchAllFlagsRequest) (*v1.FetchAllFlagsResponse, error) {
	p, key, err := a.admit(ctx, in.GetSelector())
	if err != nil {
		return nil, err
	}
	d := a.documents.open(key, a.TenantQuota(p.Tenant))
	defer a.documents.close(d)
	made, err := a.current(ctx, d, p.Principal, p.Tenant.FlagsChanged())
	if err != nil {
		return nil, err
	}
	defer a.documents.release(made)
	a.count(p.Principal, made)
	callOf(ctx).answer = made.message
	return nil, nil
}

// GetMetadata answers with nothing: old providers ask for it before the flags.
func (a *API) GetMetadata(ctx context.Context, _ *v1.GetMetadataRequest) (*v1.GetMetadataResponse, error) {
	if _, _, err := a.admit(ctx, ""); err != nil {
		return nil, err
	}
	return &v1.GetMetadataResponse{Metadata: &structpb.Struct{}}, nil
}
