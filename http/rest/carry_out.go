package rest

import (
	"context"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// Do carries out the command of a call. If the body is invalid, it only validates the command, so that all errors are
// reported at once. If ReplayRefusal is set, it only finds the events of an earlier attempt.
func Do[S any, P state.State[S]](
	ctx context.Context, w *writer.Writer, cmd commands.Command[S],
) (S, writer.Done, error) {
	req := RequestOf(ctx)
	switch {
	case req.ReplayRefusal != nil:
		state, done, found, err := writer.Find[S, P](ctx, w, CallMetadata(ctx), cmd)
		if err == nil && !found {
			err = req.ReplayRefusal
		}
		return state, done, err
	case len(req.wrong) > 0:
		state, err := writer.Check[S, P](ctx, w, CallMetadata(ctx), cmd)
		return state, writer.Done{}, AddBodyErrors(ctx, err)
	default:
		return writer.Do[S, P](ctx, w, CallMetadata(ctx), cmd)
	}
}

// Runner returns a Runner that calls do.
func Runner[S any, P state.State[S]](a *Core) writer.Runner[S] {
	return func(ctx context.Context, cmd commands.Command[S]) (S, writer.Done, error) {
		return Do[S, P](ctx, a.Writer, cmd)
	}
}

// CheckCommand validates a call before it changes anything. Its error merges wrong, the body's schema errors and the
// command's own.
func CheckCommand[S any, P state.State[S]](
	ctx context.Context, w *writer.Writer, wrong map[string]string, cmd commands.Command[S],
) error {
	_, err := writer.Check[S, P](ctx, w, CallMetadata(ctx), cmd)
	return AddBodyErrors(ctx, commands.MergeFieldErrors(wrong, err))
}
