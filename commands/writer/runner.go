package writer

import (
	"context"

	"flagledger/commands"
)

// Runner carries out the commands of one request as Do does. For a replay that may not run any more it only finds
// earlier results.
type Runner[S any] func(ctx context.Context, cmd commands.Command[S]) (S, Done, error)
