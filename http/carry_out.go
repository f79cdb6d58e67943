package http

import (
	"context"

	"flagledger/commands"
	"flagledger/events/state"
)

// do carries out the command of a call. If the body is invalid, it only validates the command, so that all errors are
// reported at once. If replayRefusal is set, it only finds the events of an earlier attempt.
func do[S any, P state.State[S]](
	ctx context.Context, w *commands.Writer, cmd commands.Command[S],
) (S, commands.Done, error) {
	req := requestOf(ctx)
	switch {
	case req.replayRefusal != nil:
		state, done, found, err := commands.Find[S, P](ctx, w, callMetadata(ctx), cmd)
		if err == nil && !found {
			err = req.replayRefusal
		}
		return state, done, err
	case len(req.wrong) > 0:
		state, err := commands.Check[S, P](ctx, w, callMetadata(ctx), cmd)
		return state, commands.Done{}, addBodyErrors(ctx, err)
	default:
		return commands.Do[S, P](ctx, w, callMetadata(ctx), cmd)
	}
}

// runner returns a Runner that calls do.
func runner[S any, P state.State[S]](a *API) commands.Runner[S] {
	return func(ctx context.Context, cmd commands.Command[S]) (S, commands.Done, error) {
		return do[S, P](ctx, a.Writer, cmd)
	}
}

// checkCommand validates a call before it changes anything. Its error merges wrong, the body's schema errors and the
// command's own.
func checkCommand[S any, P state.State[S]](
	ctx context.Context, w *commands.Writer, wrong map[string]string, cmd commands.Command[S],
) error {
	_, err := commands.Check[S, P](ctx, w, callMetadata(ctx), cmd)
	return addBodyErrors(ctx, commands.MergeFieldErrors(wrong, err))
}
