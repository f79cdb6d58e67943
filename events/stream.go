package events

import "strings"

// ByStream holds a value for each kind of stream. NewByStream creates one.
type ByStream[T any] struct{ values []T }

// NewByStream takes a value for each kind of stream, so that code which forgets a new kind does not compile. Pass an
// empty value for an irrelevant kind.
func NewByStream[T any](flag, project, tenant, user, invitation T) ByStream[T] {
	return ByStream[T]{[]T{flag, project, tenant, user, invitation}}
}

// prefixes is the registry of streams: the prefix of the names of each kind. Names of facts have the same prefix with
// a dot for the hyphen: the facts of flag- streams are flag.created and so on.
var prefixes = NewByStream(flagStreams, projectStreams, tenantStreams, userStreams, invitationStreams)

// tenantScoped marks the kinds that belong to a tenant: their facts are its audit trail.
var tenantScoped = NewByStream(true, true, true, false, false)

// KnownStream reports whether a stream is of a known kind.
func KnownStream(stream string) bool {
	_, known := prefixes.Lookup(stream)
	return known
}

// OfTenant reports whether a stream's kind belongs to a tenant.
func OfTenant(stream string) bool {
	of, _ := tenantScoped.Lookup(stream)
	return of
}

// TenantFactPrefixes returns the prefixes of the names of facts in tenants' streams.
func TenantFactPrefixes() (list []string) {
	for i, of := range tenantScoped.values {
		if of {
			list = append(list, strings.TrimSuffix(prefixes.values[i], "-")+".")
		}
	}
	return list
}

// StreamPrefixes returns the prefix of the names of each kind of stream.
func StreamPrefixes() []string { return prefixes.Values() }

// Lookup returns the value for the kind of a stream, and false for an unknown kind.
func (p ByStream[T]) Lookup(stream string) (value T, known bool) {
	for i, prefix := range prefixes.values {
		if strings.HasPrefix(stream, prefix) {
			return p.values[i], true
		}
	}
	return value, false
}

// Values returns the values of all kinds. The caller must not change them.
func (p ByStream[T]) Values() []T { return p.values }
