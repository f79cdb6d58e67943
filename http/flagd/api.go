// Package flagd serves flags by flagd's gRPC protocol to its OpenFeature providers, which evaluate them in process.
package flagd

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"buf.build/gen/go/open-feature/flagd/grpc/go/flagd/sync/v1/syncv1grpc"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

const (
	// maxStreams limits the open streams of a tenant and node. All free tenants of a creator count as one.
	maxStreams = 1000
	// maxMessage is the largest message that flagd's providers accept.
	maxMessage = 4 << 20
	// maxRequest limits the messages of clients.
	maxRequest = 16 << 10
	// batchDelay is how long changes are collected for one message.
	batchDelay = 250 * time.Millisecond
	// maxCached limits the messages that a node has in memory for a tenant's streams.
	maxCached = 64 << 20
	// recheckInterval is how often an idle stream checks its credentials: a rotated secret ends without an event.
	recheckInterval = time.Hour
	// writeTimeout is the longest that a client takes to accept a part of a message.
	writeTimeout = 30 * time.Second
)

// ListLimits lists the limits of this package.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("a message of flagd's protocol", events.SizeText(maxMessage), 0, "FAILED_PRECONDITION"),
		rest.ConcurrencyLimit("messages of flagd's protocol for open streams", events.SizeText(maxCached),
			"tenant; free: creator", 0, "RESOURCE_EXHAUSTED"),
		rest.ConcurrencyLimit("streams of flagd's protocol", events.CountText(maxStreams), "tenant; free: creator", 0,
			"RESOURCE_EXHAUSTED"),
	}
}

// Changes reports changes of flags. The snapshot implements it.
type Changes interface {
	Listen(t *snapshot.Tenant, environmentID string, most int) *snapshot.Listener
}

// API serves flagd's protocol.
type API struct {
	syncv1grpc.UnimplementedFlagSyncServiceServer
	*rest.Core
	changes   Changes
	grpc      *grpc.Server
	documents documents
	streams   *rest.StreamCounts
	open      prometheus.Gauge
	ending    chan struct{} // closed by EndStreams
	end       func()
}

// New returns an API that uses core.
func New(core *rest.Core, changes Changes) *API {
	a := &API{
		Core:      core,
		changes:   changes,
		documents: documents{by: map[documentKey]*document{}, bytes: map[string]int{}},
		streams:   rest.NewStreamCounts(),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "flagledger_flagd_streams", Help: "Streams of flagd's protocol that this node has open.",
		}),
		ending: make(chan struct{}),
	}
	a.end = sync.OnceFunc(func() { close(a.ending) })
	core.Metrics.MustRegister(a.open)
	a.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.ForceServerCodecV2(codec{}),
		grpc.UnaryInterceptor(answerUnary(core.Log)),
		grpc.StreamInterceptor(recoverStream(core.Log)),
	)
	syncv1grpc.RegisterFlagSyncServiceServer(a.grpc, a)
	healthgrpc.RegisterHealthServer(a.grpc, health{api: a})
	return a
}

// AddOperations adds the protocol to the router, and the export to the OpenAPI document too.
func (a *API) AddOperations(r chi.Router) {
	a.addConfig()
	a.AddSync(r)
}

// AddSync adds the protocol to the router.
func (a *API) AddSync(r chi.Router) {
	r.Post(rest.SyncRoute, a.serve)
	r.Post(rest.GRPCHealthRoute, a.serve)
}

// services are the paths of the gRPC services.
var services = []string{
	strings.TrimSuffix(rest.SyncRoute, "{method}"), strings.TrimSuffix(rest.GRPCHealthRoute, "{method}"),
}

// SyncServer returns a server of the protocol alone.
func (a *API) SyncServer() *http.Server {
	server := a.Server()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") ||
			!slices.ContainsFunc(services, func(service string) bool { return strings.HasPrefix(r.URL.Path, service) }) {
			http.Error(w, "this address serves flagd's sync protocol alone", http.StatusNotFound)
			return
		}
		a.ServeHTTP(w, r)
	})
	return server
}

// EndStreams ends all streams, including ones opened later.
func (a *API) EndStreams() { a.end() }

// callKey is the key of the call's request in the context of gRPC.
type callKey struct{}

// serve passes a call to gRPC. Core has limited, identified and logged it.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	out := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	a.grpc.ServeHTTP(out, r.WithContext(context.WithValue(r.Context(), callKey{}, &call{request: r})))
}

type call struct {
	request *http.Request
	answer  message // replaces what the method returns, unless it is nil
}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// deadlineWriter sets a deadline for each write, because a stream has none as a whole.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements net/http.ResponseWriter.
func (w *deadlineWriter) Write(p []byte) (int, error) {
	if err := w.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements net/http.Flusher.
func (w *deadlineWriter) Flush() {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if w.control.Flush() == nil {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}

// health says whether the node serves. It needs no credentials.
type health struct {
	healthgrpc.UnimplementedHealthServer
	api *API
}

// Check implements grpc.health.v1.
func (h health) Check(_ context.Context, in *healthgrpc.HealthCheckRequest) (*healthgrpc.HealthCheckResponse, error) {
	name := syncv1grpc.FlagSyncService_ServiceDesc.ServiceName
	if in.GetService() != "" && in.GetService() != name {
		return nil, status.Error(codes.NotFound, "the services are \"\" and "+name)
	}
	serving := healthgrpc.HealthCheckResponse_SERVING
	if h.api.Stopping.Load() {
		serving = healthgrpc.HealthCheckResponse_NOT_SERVING
	}
	return &healthgrpc.HealthCheckResponse{Status: serving}, nil
}

// gRPC runs calls in goroutines of its own, which a panic would end together with the node.

func answerUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (out any, err error) {
		defer recoverPanic(log, &err)
		out, err = handle(ctx, in)
		if made := callOf(ctx).answer; made != nil {
			out = made
		}
		return out, err
	}
}

func recoverStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
		defer recoverPanic(log, &err)
		return handle(server, s)
	}
}

func recoverPanic(log *slog.Logger, err *error) {
	if cause := recover(); cause != nil {
		log.Error("handler panicked", "cause", cause, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the service has failed")
	}
}
