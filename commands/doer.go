package commands

import "context"

// Doer carries out the commands of one request, as Do does it, or finds what they did where the request was made before and its caller may not make it
// any more.
type Doer[S any] func(ctx context.Context, cmd Command[S]) (S, Done, error)
