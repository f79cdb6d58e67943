package commands

import "context"

// Doer carries out the commands of one request as Do does. For a replay whose caller may no longer make the request it only finds what they did then.
type Doer[S any] func(ctx context.Context, cmd Command[S]) (S, Done, error)
