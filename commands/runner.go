package commands

import "context"

// Runner carries out the commands of one request as Do does. For a replay that may not be made any more it only finds
// what the request did before.
type Runner[S any] func(ctx context.Context, cmd Command[S]) (S, Done, error)
