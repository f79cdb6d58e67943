package http

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/queries"
)

// A tenant's flags are brought back in many calls, each of a bounded number of flags and of a few seconds. A call goes
// through the flags by key, some at a time. Each of these is added up in a slot for that, and then takes one of the
// node's, a large one among the costly changes. The answer has a cursor with which the next call goes on.

const (
	maxRevertsPerCall = 500             // flags that a call deals with
	revertsAtOnce     = 4               // of the 16 commands that a tenant may have under way
	maxRevertTime     = 5 * time.Second // then a call begins no further flags
)

type revertFlagsBody struct {
	At          string  `json:"at" format:"date-time" doc:"A time that is past by the store's clock"`
	ProjectID   *string `json:"projectId,omitempty" nullable:"true" doc:"Only flags that were in this project then" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
	Environment *string `json:"environment,omitempty" nullable:"true" doc:"Only what the flags have in this environment: whether they are on, their rules and their fallthrough" example:"production"`
	DryRun      bool    `json:"dryRun,omitempty" doc:"Answer what would be done, and change nothing"`
	Cursor      *string `json:"cursor,omitempty" nullable:"true" doc:"From the answer to the call before, to go on after it; all else must be as in that call"`
}

type revertedFlagsBody struct {
	Reverted      []string           `json:"reverted" nullable:"false" doc:"The keys of flags that were brought back, or would be" example:"[\"new-checkout\"]"`
	Unchanged     int                `json:"unchanged" doc:"The number of flags that are as they were then" example:"41"`
	CreatedSince  []string           `json:"createdSince" nullable:"false" doc:"The keys of flags that were created since. They stay as they are" example:"[\"dark-mode\"]"`
	Failed        []failedRevertBody `json:"failed" nullable:"false" doc:"Flags that cannot be brought back. They stay as they are"`
	CorrelationID string             `json:"correlationId" doc:"What the facts of this call, and of those that go on after it, have in common: X-Correlation-ID of the first call, or else a new id" example:"0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Cursor        *string            `json:"cursor" nullable:"true" doc:"There are further flags: make the call again with this cursor. null once all are done" example:"MDE5OGM1YTAtZTBiNw"`
}

type failedRevertBody struct {
	Key    string `json:"key" example:"old-checkout"`
	Detail string `json:"detail" example:"the project 0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20, which the flag was in, is gone"`
}

type revertedFlagsOutput struct {
	Changed
	Body revertedFlagsBody
}

func (a *API) addRevertMany() {
	op := operation("POST", "/api/v1/flags/revert", "revert-flags", "Flags",
		"Bring all flags back to what they were at a time")
	op.Description = "Each flag is brought back as by the revert of one, by the times at which the store recorded " +
		"changes. Flags that are deleted come back; flags that were created since stay, and are listed. " +
		"What cannot come back is listed under `failed` and left as it is: also a flag whose key another has that was " +
		"created since.\n\n" +
		"A call deals with a limited number of flags that changed, and takes some seconds. While its answer has a " +
		"`cursor`, make it again with that. The facts of all these calls have one correlation id. " +
		"A call whose answer was lost is made again with the same `Idempotency-Key`: it goes on where it was, and what it " +
		"had brought back stays as it is since. Without a key it begins anew: flags that were changed " +
		"after they were brought back are brought back again. " + growFlagText
	op.Errors = append(op.Errors, http.StatusConflict)
	register(a, changeFlags,
		withExamples(op, map[string]any{"at": "2026-03-14T15:09:26.535Z", "environment": "production", "dryRun": true}, nil),
		a.revertFlags)
}

func (a *API) revertFlags(ctx context.Context, in *struct {
	EnvironmentInput
	ChangeInput
	Body revertFlagsBody
}) (*revertedFlagsOutput, error) {
	if err := requestOf(ctx).replayRefusal; err != nil {
		return nil, err
	}
	forget, err := a.enterRevert(ctx)
	if err != nil {
		return nil, err
	}
	defer forget()
	r, err := a.newRevertRun(ctx, &in.Body)
	if err != nil {
		return nil, err
	}
	changed, more, err := r.changed(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	rest := changed
	for len(rest) > 0 && err == nil && (len(rest) == len(changed) || time.Since(began) < maxRevertTime) {
		piece := rest[:min(len(rest), revertsAtOnce)]
		var done int
		done, err = r.revert(ctx, piece)
		rest = rest[done:]
	}
	if len(rest) == len(changed) && err != nil {
		return nil, err
	}
	if err != nil {
		requestOf(ctx).log().Info("flags are brought back in part", "tenant", r.since.TenantID, "err", err)
	}
	return r.answer(ctx, changed[:len(changed)-len(rest)], more || len(rest) > 0)
}

// revertRun is a call that brings many flags back.
type revertRun struct {
	api   *API
	since queries.SinceFilter
	// template is the command but for the flag.
	template    commands.RevertFlag
	environment string // to which the call is limited; empty for all
	dryRun      bool

	notShown bool // the lists do not show all yet
	out      revertedFlagsBody
}

// newRevertRun reads what a call asks for. Its error is a problem, or that of a query.
func (a *API) newRevertRun(ctx context.Context, body *revertFlagsBody) (*revertRun, error) {
	p := principalOf(ctx)
	at, wrong := parseAt(body.At, a.Now())
	r := &revertRun{
		api: a, since: queries.SinceFilter{TenantID: p.tenant.ID(), At: at}, dryRun: body.DryRun,
		out: revertedFlagsBody{Reverted: []string{}, CreatedSince: []string{}, Failed: []failedRevertBody{}},
	}
	r.template = commands.RevertFlag{At: at.UTC(), Environments: p.tenant.Environments(), KeepOther: true}
	read := func(name string, sent *string) string {
		if sent == nil {
			return ""
		}
		if *sent == "" {
			wrong[name] = "must not be empty"
		}
		return *sent
	}
	r.since.ProjectID = events.CanonicalID(read("projectId", body.ProjectID))
	r.environment = read("environment", body.Environment)
	if err := r.readCursor(ctx, body.Cursor); err != nil {
		wrong["cursor"] = err.Error()
	}
	if err := withBodyErrors(ctx, wrongFields(wrong)); err != nil {
		return nil, err
	}
	if err := a.Queries.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
		return nil, err
	}
	slot, err := a.enterQueue(ctx, a.queues.reads, p)
	if err != nil {
		return nil, err
	}
	defer slot.Leave()
	if r.template.EnvironmentsThen, err = a.Queries.EnvironmentsAt(ctx, p.tenant.ID(), at); err != nil {
		return nil, err
	}
	if r.since.ProjectID != "" {
		_, err := a.Queries.Project(ctx, p.tenant.ID(), r.since.ProjectID, at)
		if errors.Is(err, queries.ErrNotFound) {
			return nil, invalid(map[string]string{"projectId": "is none of a project that the tenant had then"})
		}
		if err != nil {
			return nil, err
		}
	}
	if r.environment != "" {
		r.template.Only, err = onlyEnvironment(r.template.EnvironmentsThen, r.template.Environments, r.environment)
	}
	return r, err
}

// onlyEnvironment finds the environment that bears a name, and did then. Its error is a problem.
func onlyEnvironment(then, now []events.EnvironmentRef, name string) (*events.EnvironmentRef, error) {
	named := func(e events.EnvironmentRef) bool { return e.Name == name }
	i := slices.IndexFunc(then, named)
	switch {
	case i >= 0 && slices.Contains(now, then[i]):
		return &then[i], nil
	case i >= 0:
		return nil, newProblem(http.StatusConflict, "the environment that had this name then is gone")
	case slices.ContainsFunc(now, named):
		return nil, newProblem(http.StatusConflict, "the environment was added since")
	default:
		return nil, newProblem(http.StatusNotFound, "the tenant has no such environment")
	}
}

// changed reads the flags that the call deals with. more reports whether there are further ones.
func (r *revertRun) changed(ctx context.Context) (list []queries.ChangedFlag, more bool, err error) {
	slot, err := r.api.enterQueue(ctx, r.api.queues.reads, principalOf(ctx))
	if err != nil {
		return nil, false, err
	}
	defer slot.Leave()
	return r.api.Queries.FlagsChangedSince(ctx, r.since, maxRevertsPerCall)
}

// revert brings some flags back at once, and returns how many of them, from the first on, are done. After an error that
// is not about a flag alone, further ones may be done as well, and are not noted: the next call names them, as
// unchanged where they were brought back.
func (r *revertRun) revert(ctx context.Context, flags []queries.ChangedFlag) (done int, err error) {
	if !r.dryRun {
		if err := r.api.limitWritten(r.since.TenantID); err != nil {
			return 0, err
		}
	}
	outcomes := make([]reverted, len(flags))
	var all sync.WaitGroup
	for i, flag := range flags {
		if flag.Existed {
			all.Go(func() { outcomes[i] = r.revertOne(ctx, flag.Key) })
		}
	}
	all.Wait()
	for _, o := range outcomes {
		r.notShown = r.notShown || o.notShown
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
		case left:
			r.out.Failed = append(r.out.Failed, failedRevertBody{flag.Key, detail})
		case o.err != nil:
			return i, o.err
		case o.changed:
			r.out.Reverted = append(r.out.Reverted, flag.Key)
		default:
			r.out.Unchanged++
		}
	}
	return len(flags), nil
}

// reverted is what became of one flag.
type reverted struct {
	changed, notShown bool
	err               error
}

func (r *revertRun) revertOne(ctx context.Context, key string) reverted {
	cmd := r.template
	cmd.FlagRef = commands.FlagRef{TenantID: r.since.TenantID, Key: key}
	if err := r.api.readRevertTarget(ctx, &cmd, queries.Moment{At: r.since.At}); err != nil {
		return reverted{err: err}
	}
	release, err := r.api.countReverted(ctx, &cmd)
	if err != nil {
		return reverted{err: err}
	}
	defer release()
	slot, err := r.api.enterQueue(ctx, r.api.queues.reversals, principalOf(ctx))
	if err != nil {
		return reverted{err: err}
	}
	defer slot.Leave()
	flag, err := commands.Check(ctx, r.api.Writer, by(ctx), cmd)
	if err != nil || r.dryRun {
		return reverted{changed: err == nil && cmd.Changes(flag), err: err}
	}
	if cmd.Bytes(flag) > largeBody {
		slot.Leave()
		large, err := r.api.enterQueue(ctx, r.api.queues.changes, principalOf(ctx))
		if err != nil {
			return reverted{err: err}
		}
		defer large.Leave()
	}
	_, done, err := do(ctx, r.api.Writer, cmd)
	return reverted{done.Position != events.Position{}, done.Stale, err}
}

// failureReason tells why a flag cannot be brought back; left is false where that is not about the flag alone, or it
// was brought back.
func (r *revertRun) failureReason(ctx context.Context, key string, err error) (detail string, left bool) {
	refusal, refused := errors.AsType[*commands.Error](err)
	_, gotNoSlot := errors.AsType[*problem](err)
	switch {
	case err == nil, gotNoSlot, ctx.Err() != nil, errors.Is(err, queries.ErrUnavailable):
		return "", false
	case !refused:
		requestOf(ctx).log().Error("a flag cannot be brought back", "tenant", r.since.TenantID, "flag", key, "err", err)
		return "its facts cannot be read", true
	case refusal.Kind == commands.Conflict, refusal.Kind == commands.Invalid:
		return cut(refusal.Detail, maxDetail), true
	default:
		return "", false
	}
}

// answer ends the call after some flags.
func (r *revertRun) answer(ctx context.Context, flags []queries.ChangedFlag, more bool) (*revertedFlagsOutput, error) {
	last := ""
	if more {
		last = flags[len(flags)-1].Key
		r.out.Cursor = new(r.writeCursor(last))
	}
	slot, err := r.api.enterQueue(ctx, r.api.queues.reads, principalOf(ctx))
	if err != nil {
		return nil, r.partialFailure(ctx, err)
	}
	defer slot.Leave()
	unchanged, err := r.api.Queries.FlagsUnchangedSince(ctx, r.since, last)
	if err != nil {
		return nil, r.partialFailure(ctx, err)
	}
	r.out.Unchanged += unchanged
	return &revertedFlagsOutput{changedBy(commands.Done{Stale: r.notShown}), r.out}, nil
}

// partialFailure is an error after which the call cannot be answered: it says what was done all the same.
func (r *revertRun) partialFailure(ctx context.Context, err error) error {
	if r.dryRun || len(r.out.Reverted) == 0 {
		return err
	}
	requestOf(ctx).log().Warn("a call that brought flags back cannot be answered", "tenant", r.since.TenantID, "err", err)
	return newProblem(
		http.StatusServiceUnavailable,
		fmt.Sprintf(
			"%d flags were brought back, with the correlation id %s, but the rest cannot be answered at this moment: make the "+
				"call again, with the same Idempotency-Key if it had one",
			len(r.out.Reverted),
			r.out.CorrelationID,
		),
	)
}

// cursorScope is what a cursor is good for, one tenant and one body: with another, flags would be left out unnoticed.
func (r *revertRun) cursorScope() []string {
	return []string{
		r.since.TenantID,
		r.since.At.UTC().Format(time.RFC3339Nano),
		r.since.ProjectID,
		r.environment,
		strconv.FormatBool(r.dryRun),
	}
}

func (r *revertRun) writeCursor(last string) string {
	return base64.RawURLEncoding.EncodeToString(
		[]byte(strings.Join(append(r.cursorScope(), r.out.CorrelationID, last), "\x00")),
	)
}

// readCursor reads where the call begins, and under which correlation id it makes facts.
func (r *revertRun) readCursor(ctx context.Context, cursor *string) error {
	req := requestOf(ctx)
	defer func() { r.out.CorrelationID = req.correlation }()
	if cursor == nil {
		if req.correlation == req.id && req.once != nil { // which is to be the same when the request is made again
			req.correlation = newID(ctx)
		}
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*cursor)
	parts := strings.Split(string(text), "\x00")
	scope := r.cursorScope()
	if err != nil || len(parts) != len(scope)+2 || !slices.Equal(parts[:len(scope)], scope) ||
		!validText(parts[len(scope)], maxCorrelation) {
		return errors.New(
			"is none of such a call: take it from the answer to the call before, and send all else as in that call",
		)
	}
	req.correlation, r.since.After = parts[len(scope)], parts[len(scope)+1]
	return nil
}
