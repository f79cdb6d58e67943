package flags

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/queries"
)

// Reverting a tenant's flags takes many calls, each limited in flags and seconds. A call reverts the flags in the order
// of their keys, some at a time. The response has a cursor for the next call.

const (
	maxRevertsPerCall = 500             // flags per call
	revertsAtOnce     = 4               // of a tenant's 16 concurrent commands
	maxRevertTime     = 5 * time.Second // after this a call starts no further flags
)

type revertFlagsBody struct {
	At          string  `json:"at" format:"date-time" doc:"A time that is past by the store's clock"`
	ProjectID   *string `json:"projectId,omitempty" nullable:"true" doc:"Only flags that were in this project at that time" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
	Environment *string `json:"environment,omitempty" nullable:"true" doc:"Only the flags' state in this environment: whether they are on, their rules, their fallthrough and their prerequisites" example:"production"`
	DryRun      bool    `json:"dryRun,omitempty" doc:"Report what would be done, and change nothing"`
	Cursor      *string `json:"cursor,omitempty" nullable:"true" doc:"From the previous response, to continue; everything else must be as in that call"`
}

type revertedFlagsBody struct {
	Reverted      []string           `json:"reverted" nullable:"false" doc:"The keys of flags that were reverted, or would be" example:"[\"new-checkout\"]"`
	Restored      []string           `json:"restored" nullable:"false" doc:"The keys of deleted flags that were created again, or would be. The response to a repeated call may lack some" example:"[\"old-checkout\"]"`
	Unchanged     int                `json:"unchanged" doc:"The number of flags that have not changed since" example:"41"`
	CreatedSince  []string           `json:"createdSince" nullable:"false" doc:"The keys of flags that were created since. They remain unchanged" example:"[\"dark-mode\"]"`
	Failed        []failedRevertBody `json:"failed" nullable:"false" doc:"Flags that cannot be reverted. They remain unchanged"`
	CorrelationID string             `json:"correlationId" doc:"The correlation id of the facts of this call and its continuations: X-Correlation-ID of the first call, or else a new id" example:"0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Cursor        *string            `json:"cursor" nullable:"true" doc:"Call again with this cursor for further flags. null once all are done" example:"MDE5OGM1YTAtZTBiNw"`
}

type failedRevertBody struct {
	Key    string `json:"key" example:"old-checkout"`
	Detail string `json:"detail" example:"the project 0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20, which the flag was in, is gone"`
}

type revertedFlagsOutput struct {
	rest.Changed
	Body revertedFlagsBody
}

func (a *API) addRevertMany() {
	op := rest.Operation("POST", "/api/v1/flags/revert", "revert-flags", "Flags",
		"Revert all flags to their state at a time")
	op.Description = "Reverts each flag as the revert of a single flag does, by the recorded times of changes. It " +
		"re-creates deleted flags. Flags created after `at` stay, and are listed. Flags that cannot be reverted stay as " +
		"they are and are listed under `failed`, including flags whose key now belongs to a different flag.\n\n" +
		"A call reverts a limited number of flags and takes some seconds. Call again while the response has a `cursor`. " +
		"The facts of all these calls share a correlation id. If a response is lost, retry with the same " +
		"`Idempotency-Key`: flags that were already reverted are not reverted again. Without a key the call starts over, " +
		"and overwrites changes made after the first revert. " + growFlagText
	op.Errors = append(op.Errors, http.StatusConflict)
	rest.Register(a.Core, rest.ChangeFlags,
		rest.WithExamples(op, map[string]any{"at": "2026-03-14T15:09:26.535Z", "environment": "production",
			"dryRun": true}, nil),
		a.revertFlags)
}

func (a *API) revertFlags(ctx context.Context, in *struct {
	rest.EnvironmentInput
	rest.ChangeInput
	Body revertFlagsBody
}) (*revertedFlagsOutput, error) {
	if err := rest.RequestOf(ctx).ReplayRefusal; err != nil {
		return nil, err
	}
	leaveMemory, err := a.EnterRevert(ctx)
	if err != nil {
		return nil, err
	}
	defer leaveMemory()
	r, err := a.newRevertRun(ctx, &in.Body)
	if err != nil {
		return nil, err
	}
	changed, more, err := r.changed(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r.keys = map[string]bool{}
	for _, flag := range changed {
		r.keys[flag.Key] = flag.Existed
	}
	left := changed
	for len(left) > 0 && err == nil && (len(left) == len(changed) || time.Since(began) < maxRevertTime) {
		piece := left[:min(len(left), revertsAtOnce)]
		var done int
		done, err = r.revert(ctx, piece)
		left = left[done:]
	}
	if len(left) == len(changed) && err != nil {
		return nil, err
	}
	if retried := r.retryBlocked(ctx, began); err == nil {
		err = retried
	}
	if err != nil {
		rest.RequestOf(ctx).Log().Info("flags are partly reverted", "tenant", r.filter.TenantID, "err", err)
	}
	return r.answer(ctx, changed[:len(changed)-len(left)], more || len(left) > 0)
}

// revertRun is a call that reverts many flags.
type revertRun struct {
	api    *API
	filter queries.SinceFilter
	// template is the command without its flag.
	template    commands.RevertFlag
	environment string // limits the call to one environment; empty for all
	dryRun      bool

	keys    map[string]bool       // of the flags of this call, true for those that existed
	blocked []queries.ChangedFlag // that cannot be reverted before others
	reasons map[string]string     // why, by key

	stale bool // lists do not show all changes yet
	out   revertedFlagsBody
}

// newRevertRun reads the body of a call. Its error is a problem or a query's error.
func (a *API) newRevertRun(ctx context.Context, body *revertFlagsBody) (*revertRun, error) {
	p := rest.PrincipalOf(ctx)
	at, wrong := rest.ParseAt(body.At, a.Now())
	r := &revertRun{
		api: a, filter: queries.SinceFilter{TenantID: p.Tenant.ID(), At: at}, dryRun: body.DryRun,
		out: revertedFlagsBody{Reverted: []string{}, Restored: []string{}, CreatedSince: []string{},
			Failed: []failedRevertBody{}},
	}
	r.template = commands.RevertFlag{At: at.UTC(), Environments: p.Tenant.Environments(), KeepOther: true}
	read := func(name string, sent *string) string {
		if sent == nil {
			return ""
		}
		if *sent == "" {
			wrong[name] = "must not be empty"
		}
		return *sent
	}
	r.filter.ProjectID = events.CanonicalID(read("projectId", body.ProjectID))
	r.environment = read("environment", body.Environment)
	if err := r.readCursor(ctx, body.Cursor); err != nil {
		wrong["cursor"] = err.Error()
	}
	if err := rest.AddBodyErrors(ctx, rest.WrongFields(wrong)); err != nil {
		return nil, err
	}
	if err := a.Queries.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
		return nil, err
	}
	slot, err := a.EnterQueue(ctx, a.Queues.Database, p)
	if err != nil {
		return nil, err
	}
	defer slot.Leave()
	if r.template.EnvironmentsAt, err = a.Queries.EnvironmentsAt(ctx, p.Tenant.ID(), at); err != nil {
		return nil, err
	}
	if r.filter.ProjectID != "" {
		_, err := a.Queries.Project(ctx, p.Tenant.ID(), r.filter.ProjectID, at)
		if errors.Is(err, queries.ErrNotFound) {
			return nil, rest.Invalid(map[string]string{"projectId": "is not a project that the tenant had at that time"})
		}
		if err != nil {
			return nil, err
		}
	}
	if r.environment != "" {
		r.template.Only, err = onlyEnvironment(r.template.EnvironmentsAt, r.template.Environments, r.environment)
	}
	return r, err
}

// onlyEnvironment finds the environment that has a name now and had it then. Its error is a problem.
func onlyEnvironment(then, now []events.EnvironmentRef, name string) (*events.EnvironmentRef, error) {
	named := func(e events.EnvironmentRef) bool { return e.Name == name }
	i := slices.IndexFunc(then, named)
	switch {
	case i >= 0 && slices.Contains(now, then[i]):
		return &then[i], nil
	case i >= 0:
		return nil, rest.NewProblem(http.StatusConflict, "the environment that had this name at that time was deleted")
	case slices.ContainsFunc(now, named):
		return nil, rest.NewProblem(http.StatusConflict, "the environment was added since")
	default:
		return nil, rest.NewProblem(http.StatusNotFound, "the tenant has no such environment")
	}
}

// changed reads the flags of this call. more reports whether there are further ones.
func (r *revertRun) changed(ctx context.Context) (list []queries.ChangedFlag, more bool, err error) {
	slot, err := r.api.EnterQueue(ctx, r.api.Queues.Database, rest.PrincipalOf(ctx))
	if err != nil {
		return nil, false, err
	}
	defer slot.Leave()
	return r.api.Queries.FlagsChangedSince(ctx, r.filter, maxRevertsPerCall)
}

// revert reverts some flags concurrently, and returns how many of the first are done. After an error that concerns more
// than one flag, others may be done too; the next call then counts them as unchanged.
func (r *revertRun) revert(ctx context.Context, flags []queries.ChangedFlag) (done int, err error) {
	if !r.dryRun {
		if err := r.api.LimitWritten(r.filter.TenantID); err != nil {
			return 0, err
		}
	}
	outcomes := make([]revertResult, len(flags))
	var all sync.WaitGroup
	for i, flag := range flags {
		if flag.Existed {
			all.Go(func() { outcomes[i] = r.revertOne(ctx, flag.Key) })
		}
	}
	all.Wait()
	for _, o := range outcomes {
		r.stale = r.stale || o.stale
	}
	for i, flag := range flags {
		o := outcomes[i]
		detail, left := r.failureReason(ctx, flag.Key, o.err)
		switch {
		case !flag.Existed:
			r.out.CreatedSince = append(r.out.CreatedSince, flag.Key)
		case errors.Is(o.err, commands.ErrOtherFlag):
			r.out.CreatedSince = append(r.out.CreatedSince, flag.Key)
			r.out.Failed = append(r.out.Failed, failedRevertBody{flag.Key, detail})
		case errors.Is(o.err, commands.ErrOtherFlagsFirst):
			r.block(flag, detail)
		case left:
			r.out.Failed = append(r.out.Failed, failedRevertBody{flag.Key, detail})
		case o.err != nil:
			return i, o.err
		case o.changed:
			r.out.Reverted = append(r.out.Reverted, flag.Key)
			if o.restored {
				r.out.Restored = append(r.out.Restored, flag.Key)
			}
		default:
			r.out.Unchanged++
		}
	}
	return len(flags), nil
}

// block notes a flag that may be reverted once others are.
func (r *revertRun) block(flag queries.ChangedFlag, reason string) {
	if r.reasons == nil {
		r.reasons = map[string]string{}
	}
	r.blocked = append(r.blocked, flag)
	r.reasons[flag.Key] = reason
}

// retryBlocked reverts blocked flags while that makes progress and the call may take longer. Flags that are left have
// failed. Its error is that of a revert.
func (r *revertRun) retryBlocked(ctx context.Context, began time.Time) (err error) {
	for progress := true; progress && err == nil && len(r.blocked) > 0; {
		again := r.blocked
		r.blocked = nil
		for i := 0; i < len(again); {
			piece, done := again[i:min(len(again), i+revertsAtOnce)], 0
			if err == nil && time.Since(began) < maxRevertTime {
				done, err = r.revert(ctx, piece)
			}
			for _, flag := range piece[done:] {
				r.block(flag, r.reasons[flag.Key])
			}
			i += len(piece)
		}
		progress = len(r.blocked) < len(again)
	}
	for _, flag := range r.blocked {
		r.out.Failed = append(r.out.Failed, failedRevertBody{flag.Key, r.reasons[flag.Key]})
	}
	slices.Sort(r.out.Reverted)
	slices.Sort(r.out.Restored)
	slices.SortFunc(r.out.Failed, func(a, b failedRevertBody) int { return strings.Compare(a.Key, b.Key) })
	return err
}

// assumeOthers has a command that is only checked find the other flags of the call as they will be.
func (r *revertRun) assumeOthers(cmd *commands.RevertFlag) {
	for id, list := range cmd.To.Prerequisites {
		for _, p := range list {
			if !r.keys[p.FlagKey] {
				continue
			}
			other := commands.RequiredFlag{}
			for _, s := range p.Serves {
				other.Variations = append(other.Variations, s.VariationID)
			}
			if cmd.Required[id] == nil {
				cmd.Required[id] = commands.RequiredFlags{}
			}
			cmd.Required[id][p.FlagKey] = other
		}
	}
	cmd.Dependents = slices.DeleteFunc(cmd.Dependents, func(d commands.Dependent) bool { return r.keys[d.FlagKey] })
}

// revertResult is the result for one flag.
type revertResult struct {
	changed, restored, stale bool
	err                      error
}

func (r *revertRun) revertOne(ctx context.Context, key string) revertResult {
	cmd := r.template
	cmd.FlagRef = commands.FlagRef{TenantID: r.filter.TenantID, Key: key}
	if err := r.api.readRevertTarget(ctx, &cmd, queries.Moment{At: r.filter.At}); err != nil {
		return revertResult{err: err}
	}
	release, err := r.api.countReverted(ctx, &cmd)
	if err != nil {
		return revertResult{err: err}
	}
	defer release()
	slot, err := r.api.EnterQueue(ctx, r.api.Queues.Database, rest.PrincipalOf(ctx))
	if err != nil {
		return revertResult{err: err}
	}
	defer slot.Leave()
	if r.dryRun {
		r.assumeOthers(&cmd)
	}
	flag, err := writer.Check(ctx, r.api.Writer, rest.CallMetadata(ctx), cmd)
	if err != nil || r.dryRun {
		return revertResult{changed: err == nil && cmd.Changes(flag), restored: !flag.Exists, err: err}
	}
	if cmd.Bytes(flag) > rest.LargeBody {
		slot.Leave()
		large, err := r.api.EnterQueue(ctx, r.api.Queues.CPU, rest.PrincipalOf(ctx))
		if err != nil {
			return revertResult{err: err}
		}
		defer large.Leave()
	}
	_, done, err := rest.Do(ctx, r.api.Writer, cmd)
	return revertResult{done.Position != events.Position{}, !flag.Exists, done.Stale, err}
}

// failureReason returns why a flag cannot be reverted. left is false if the flag was reverted, or if the error concerns
// more than this flag.
func (r *revertRun) failureReason(ctx context.Context, key string, err error) (detail string, left bool) {
	refusal, refused := errors.AsType[*commands.Error](err)
	_, gotNoSlot := errors.AsType[*rest.Problem](err)
	switch {
	case err == nil, gotNoSlot, ctx.Err() != nil, errors.Is(err, queries.ErrUnavailable):
		return "", false
	case !refused:
		rest.RequestOf(ctx).Log().Error("a flag cannot be reverted", "tenant", r.filter.TenantID, "flag", key, "err", err)
		return "its facts cannot be read", true
	case refusal.Kind == commands.Conflict, refusal.Kind == commands.Invalid:
		detail = refusal.Detail
		for _, field := range slices.Sorted(maps.Keys(refusal.Fields)) {
			detail += ": " + field + " " + refusal.Fields[field]
		}
		return rest.Cut(detail, rest.MaxDetail), true
	default:
		return "", false
	}
}

// answer returns the response after some flags.
func (r *revertRun) answer(ctx context.Context, flags []queries.ChangedFlag, more bool) (*revertedFlagsOutput, error) {
	last := ""
	if more {
		last = flags[len(flags)-1].Key
		r.out.Cursor = new(r.writeCursor(last))
	}
	slot, err := r.api.EnterQueue(ctx, r.api.Queues.Database, rest.PrincipalOf(ctx))
	if err != nil {
		return nil, r.partialFailure(ctx, err)
	}
	defer slot.Leave()
	unchanged, err := r.api.Queries.FlagsUnchangedSince(ctx, r.filter, last)
	if err != nil {
		return nil, r.partialFailure(ctx, err)
	}
	r.out.Unchanged += unchanged
	return &revertedFlagsOutput{rest.ChangeHeaders(writer.Done{Stale: r.stale}), r.out}, nil
}

// partialFailure returns an error that reports what was done, for a call that cannot be answered.
func (r *revertRun) partialFailure(ctx context.Context, err error) error {
	if r.dryRun || len(r.out.Reverted) == 0 {
		return err
	}
	rest.RequestOf(ctx).Log().Warn("a call that reverted flags cannot be answered", "tenant", r.filter.TenantID,
		"err", err)
	return rest.NewProblem(
		http.StatusServiceUnavailable,
		fmt.Sprintf(
			"%d flags were reverted, with the correlation id %s, but the result cannot be read: retry the call, with the same "+
				"Idempotency-Key if it had one",
			len(r.out.Reverted),
			r.out.CorrelationID,
		),
	)
}

// cursorScope returns the tenant and body that a cursor is valid for. With others, flags would be skipped unnoticed.
func (r *revertRun) cursorScope() []string {
	return []string{
		r.filter.TenantID,
		r.filter.At.UTC().Format(time.RFC3339Nano),
		r.filter.ProjectID,
		r.environment,
		strconv.FormatBool(r.dryRun),
	}
}

func (r *revertRun) writeCursor(last string) string {
	return base64.RawURLEncoding.EncodeToString(
		[]byte(strings.Join(append(r.cursorScope(), r.out.CorrelationID, last), "\x00")),
	)
}

// readCursor reads where the call begins and its correlation id.
func (r *revertRun) readCursor(ctx context.Context, cursor *string) error {
	req := rest.RequestOf(ctx)
	defer func() { r.out.CorrelationID = req.Correlation }()
	if cursor == nil {
		if req.Correlation == req.ID && req.Once != nil { // the same for a retry
			req.Correlation = rest.NewID(ctx)
		}
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*cursor)
	parts := strings.Split(string(text), "\x00")
	scope := r.cursorScope()
	if err != nil || len(parts) != len(scope)+2 || !slices.Equal(parts[:len(scope)], scope) ||
		!rest.ValidText(parts[len(scope)], rest.MaxCorrelation) {
		return errors.New(
			"is not a cursor of this call: take it from the previous response, and send everything else as in that call",
		)
	}
	req.Correlation, r.filter.After = parts[len(scope)], parts[len(scope)+1]
	return nil
}
