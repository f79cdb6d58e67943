package events

import "strings"

// PerStream holds a value for each kind of stream. EachStream makes one.
type PerStream[T any] struct{ values []T }

// EachStream makes a PerStream. It has one parameter for each kind of stream: with a new one, no code compiles that forgets it. Whoever has nothing to do
// with a kind says so with an empty value.
func EachStream[T any](flag, project, tenant, user, invitation T) PerStream[T] {
	return PerStream[T]{[]T{flag, project, tenant, user, invitation}}
}

// prefixes is the registry of streams: what the names of each kind begin with. The stored names of its facts begin alike, with a dot in place of the
// hyphen.
var prefixes = EachStream(flagStreams, projectStreams, tenantStreams, userStreams, invitationStreams)

// StreamPrefixes returns what the names of streams begin with, one for each kind.
func StreamPrefixes() []string { return prefixes.Values() }

// Of returns the value for the kind of a stream. It reports false for a stream of no known kind.
func (p PerStream[T]) Of(stream string) (value T, known bool) {
	for i, prefix := range prefixes.values {
		if strings.HasPrefix(stream, prefix) {
			return p.values[i], true
		}
	}
	return value, false
}

// Values returns the values of all kinds. The caller must not change them.
func (p PerStream[T]) Values() []T { return p.values }
