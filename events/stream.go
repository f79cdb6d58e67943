package events

import "strings"

// ByStream holds a value for each kind of stream. NewByStream creates one.
type ByStream[T any] struct{ values []T }

// NewByStream takes a value for each kind of stream, so that code which forgets a new kind does not compile. Pass an
// empty value for an irrelevant kind.
func NewByStream[T any](flag, project, tenant, user, invitation, segment T) ByStream[T] {
	return ByStream[T]{[]T{flag, project, tenant, user, invitation, segment}}
}

// prefixes is the registry of streams: the prefix of the names of each kind. Names of facts have the same prefix with
// a dot for the hyphen: the facts of flag- streams are flag.created and so on.
var prefixes = NewByStream(flagStreams, projectStreams, tenantStreams, userStreams, invitationStreams, segmentStreams)

// tenants find the tenant of a fact, whose audit trail it is in, by kind of stream; nil for a kind of no tenant. They
// return false if an earlier fact of the stream names the tenant.
var tenants = NewByStream(flagTenant, projectTenant, tenantTenant, nil, nil, segmentTenant)

func flagTenant(e Recorded) (id string, known bool) {
	id, _ = ParseFlagStream(e.Stream)
	return id, true
}

func segmentTenant(e Recorded) (id string, known bool) {
	id, _ = ParseSegmentStream(e.Stream)
	return id, true
}

func projectTenant(e Recorded) (id string, known bool) {
	created, known := e.Fact.(ProjectCreated)
	return created.TenantID, known
}

func tenantTenant(e Recorded) (id string, known bool) {
	return strings.TrimPrefix(e.Stream, tenantStreams), true
}

// KnownStream reports whether a stream is of a known kind.
func KnownStream(stream string) bool {
	_, known := prefixes.Lookup(stream)
	return known
}

// OfTenant reports whether a stream's kind belongs to a tenant.
func OfTenant(stream string) bool {
	find, _ := tenants.Lookup(stream)
	return find != nil
}

// TenantOf returns the tenant of a fact, empty if its stream's kind belongs to none. It returns false if an
// earlier fact of the stream names the tenant.
func TenantOf(e Recorded) (id string, known bool) {
	find, _ := tenants.Lookup(e.Stream)
	if find == nil {
		return "", true
	}
	return find(e)
}

// TenantFactPrefixes returns the prefixes of the names of facts in tenants' streams.
func TenantFactPrefixes() (list []string) {
	for i, find := range tenants.values {
		if find != nil {
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
