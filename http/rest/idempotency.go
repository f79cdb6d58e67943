package rest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"flagledger/commands"
	"flagledger/commands/keep/idempotency"
	"flagledger/events"
)

// Changes by signed-in callers support an Idempotency-Key. Public operations do not: their responses hold tokens, and
// the key would belong to no caller.

const maxKey = 255

var keyParameter = &huma.Param{
	Name: "Idempotency-Key",
	In:   "header",
	Description: fmt.Sprintf(
		"Repeating the request with the same key returns the first response, for %s. Use a random key such as a UUID: 1 to "+
			"%d printable ASCII characters.",
		events.PeriodText(idempotency.TTL),
		maxKey,
	),
	Schema: &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(maxKey)},
}

// NewID returns a unique id, which is the same when a request is retried with its Idempotency-Key.
func NewID(ctx context.Context) string { return RequestOf(ctx).Once.NewID() }

// once replays the stored response of a request with an Idempotency-Key, or carries the request out and stores the
// response. It stores no 429 or 5xx, so that the request can be retried.
//
// If limited is not nil, no more may be stored: a new request is refused with it. If the response of an earlier attempt
// was lost, every retry builds it again from that attempt's events.
func (a *Core) once(ctx huma.Context, p *Principal, limited error, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	request, err := idempotencyRequest(ctx, p.Credential, p.tenantID())
	if err != nil {
		WriteProblem(w, r, ProblemOf(r.Context(), err))
		return
	}
	begin := a.Idempotency.Begin
	if limited != nil {
		begin = a.Idempotency.Resume
	}
	attempt, answer, err := a.inReadSlot(r.Context(), p, request, begin)
	switch {
	case err != nil:
		WriteProblem(w, r, ProblemOf(r.Context(), err))
	case answer != nil:
		repeat(w, answer)
	case attempt == nil:
		WriteProblem(w, r, ProblemOf(r.Context(), limited))
	default:
		RequestOf(r.Context()).ReplayRefusal = limited
		a.carryOut(ctx, attempt, limited == nil, next)
	}
}

// inReadSlot calls begin, which queries the database, in a read slot.
func (a *Core) inReadSlot(
	ctx context.Context, p *Principal, request idempotency.Request,
	begin func(context.Context, idempotency.Request) (*idempotency.Attempt, *idempotency.Answer, error),
) (*idempotency.Attempt, *idempotency.Answer, error) {
	slot, err := a.EnterQueue(ctx, a.Queues.Database, p)
	if err != nil {
		return nil, nil, err
	}
	defer slot.Leave()
	return begin(ctx, request)
}

// replayRefused answers the replay of a request that removed the caller's own access. It returns false for any other.
// The answer is the stored response or, if that was lost, built from the events of the first attempt.
func (a *Core) replayRefused(ctx huma.Context, need Access, refusal error, next func(huma.Context)) bool {
	r, w := Unwrap(ctx)
	req := RequestOf(r.Context())
	c := req.credential
	if c == nil && need.EndsSession {
		c = a.endedSession(r)
	}
	if c == nil {
		return false
	}
	if _, err := SmallBody(r); err != nil { // all such requests have small bodies
		return false
	}
	request, err := idempotencyRequest(ctx, c, ctx.Param("tenantId"))
	if err != nil {
		return false
	}
	attempt, answer, err := a.Idempotency.Resume(r.Context(), request)
	switch {
	case commands.KindOf(err) == commands.Invalid:
		return false
	case err != nil:
		WriteProblem(w, r, ProblemOf(r.Context(), err))
	case answer != nil:
		repeat(w, answer)
	case attempt == nil:
		return false
	default:
		req.ReplayRefusal = refusal
		a.carryOut(huma.WithValue(ctx, principalKey{}, &Principal{Credential: c}), attempt, true, next)
	}
	return true
}

// endedSession returns the credential of a token whose session has ended. It returns nil if the token is invalid or the
// person may not use the service.
func (a *Core) endedSession(r *http.Request) *Credential {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	c, err := a.Verifier.verify(r.Context(), token)
	if err != nil || c.Machine != nil || a.Live.ShutOut(c.Claims.UserID) {
		return nil
	}
	return c
}

// keyBytes estimates the bytes of an Idempotency-Key in the database, without the response's body.
const keyBytes = 512

// carryOut carries a request out. If store is true, it stores a final response for replays.
func (a *Core) carryOut(ctx huma.Context, attempt *idempotency.Attempt, store bool, next func(huma.Context)) {
	r, w := Unwrap(ctx)
	req := RequestOf(r.Context())
	req.Once = attempt.Once
	p := PrincipalOf(ctx.Context())
	a.noteStored(p, keyBytes)
	stored := false
	defer func() {
		if stored {
			return
		}
		if err := attempt.Abandon(r.Context()); err != nil {
			req.Log().Warn("a request with an Idempotency-Key cannot be retried yet", "err", err)
		}
	}()
	rec := &recorder{header: w.Header().Clone(), answer: idempotency.Answer{Status: http.StatusOK}}
	req.answer = rec.header
	next(humachi.NewContext(ctx.Operation(), r.WithContext(ctx.Context()), rec))
	rec.answer.Body = rec.body.Bytes()
	rec.answer.Header = maps.Clone(rec.header)
	maps.DeleteFunc(rec.answer.Header,
		func(name string, values []string) bool { return slices.Equal(w.Header()[name], values) })
	final := rec.answer.Status < http.StatusInternalServerError && rec.answer.Status != http.StatusTooManyRequests
	if store && final && (req.ReplayRefusal == nil || rec.answer.Status < http.StatusBadRequest) {
		if err := attempt.Finish(r.Context(), rec.answer); err != nil {
			req.Log().Warn("the response to a request with an Idempotency-Key could not be stored; "+
				"a retry builds it from its events", "err", err)
		} else {
			stored = true
			a.noteStored(p, len(rec.answer.Body))
		}
	}
	send(w, &rec.answer)
}

// noteStored counts bytes stored for an Idempotency-Key: for the call's tenant, or for the person if it has none.
func (a *Core) noteStored(p *Principal, bytes int) {
	if p.Tenant != nil {
		a.Quotas.Wrote(p.Tenant.ID(), bytes)
		return
	}
	a.Quotas.WroteFor(p.Claims.UserID, bytes)
}

func repeat(w http.ResponseWriter, answer *idempotency.Answer) {
	w.Header().Set("Idempotent-Replayed", "true")
	send(w, answer)
}

func send(w http.ResponseWriter, answer *idempotency.Answer) {
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.Status)
	if len(answer.Body) > 0 {
		_, _ = w.Write(answer.Body)
	}
}

// idempotencyRequest reads a request with an Idempotency-Key and leaves its body readable again. Without TenantID, the
// tenant is the one in X-Tenant-ID.
func idempotencyRequest(ctx huma.Context, c *Credential, tenantID string) (idempotency.Request, error) {
	r, _ := Unwrap(ctx)
	keys := r.Header["Idempotency-Key"]
	if len(keys) != 1 || !goodKey(keys[0]) {
		return idempotency.Request{}, Invalid(
			map[string]string{"Idempotency-Key": fmt.Sprintf("must be one key of 1 to %d printable ASCII characters", maxKey)},
		)
	}
	body, err := bodyUpTo(r, maxBody)
	if err != nil {
		return idempotency.Request{}, err
	}
	who := "user " + c.Claims.UserID
	if c.Machine != nil {
		who = "client " + c.Machine.ClientID
	}
	return idempotency.Request{
		Key:   keys[0],
		Scope: strings.Join([]string{cmp.Or(tenantID, r.Header.Get(tenantHeader)), who, r.Method, pathOf(ctx)}, "\x00"),
		Content: strings.Join(
			[]string{r.URL.RawQuery, r.Header.Get(EnvironmentHeader), strings.Join(r.Header["If-Match"], ","), string(body)},
			"\x00",
		),
	}, nil
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// pathOf returns the path of a call in canonical form: a client's retry may escape it or write ids differently.
func pathOf(ctx huma.Context) string {
	return pathParameter.ReplaceAllStringFunc(ctx.Operation().Path, func(name string) string {
		return url.PathEscape(ctx.Param(name[1 : len(name)-1]))
	})
}

func goodKey(key string) bool {
	return key != "" && len(key) <= maxKey && !strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
}

// recorder buffers a response.
type recorder struct {
	header http.Header
	answer idempotency.Answer
	body   bytes.Buffer
	sent   bool
}

// Header implements net/http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements net/http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if !r.sent {
		r.sent, r.answer.Status = true, status
	}
}

// Write implements net/http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.sent = true
	return r.body.Write(b)
}
