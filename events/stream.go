package events

import "strings"

// ByStream holds a value for each kind of stream. NewByStream makes one.
type ByStream[T any] struct{ values []T }

// NewByStream makes a ByStream, with a parameter for each kind of stream: when a kind is added, code that forgets it
// does not compile. Code that has nothing to do with a kind passes an empty value.
func NewByStream[T any](flag, project, tenant, user, invitation T) ByStream[T] {
	return ByStream[T]{[]T{flag, project, tenant, user, invitation}}
}

// prefixes is the registry of streams: the beginning of the names of each kind. The stored names of their facts begin
// in the same way, with a dot instead of the hyphen: the facts of flag- streams are flag.created and so on.
var prefixes = NewByStream(flagStreams, projectStreams, tenantStreams, userStreams, invitationStreams)

// tenantScoped tells which kinds are of a tenant: their facts are its audit trail.
var tenantScoped = NewByStream(true, true, true, false, false)

// KnownStream reports whether a stream is of a known kind.
func KnownStream(stream string) bool {
	_, known := prefixes.Of(stream)
	return known
}

// OfTenant reports whether a stream is of a kind that is of a tenant.
func OfTenant(stream string) bool {
	of, _ := tenantScoped.Of(stream)
	return of
}

// TenantFactPrefixes returns the beginnings of the names of the facts in streams of tenants.
func TenantFactPrefixes() (list []string) {
	for i, of := range tenantScoped.values {
		if of {
			list = append(list, strings.TrimSuffix(prefixes.values[i], "-")+".")
		}
	}
	return list
}

// StreamPrefixes returns the beginning of the names of each kind of stream.
func StreamPrefixes() []string { return prefixes.Values() }

// Of returns the value for the kind of a stream, and false if the stream is of no known kind.
func (p ByStream[T]) Of(stream string) (value T, known bool) {
	for i, prefix := range prefixes.values {
		if strings.HasPrefix(stream, prefix) {
			return p.values[i], true
		}
	}
	return value, false
}

// Values returns the values of all kinds. The caller must not change them.
func (p ByStream[T]) Values() []T { return p.values }
