package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"flagledger/events"
)

// Description says in words what a fact did, from the fact alone. The audit trail, histories, exports and the command
// line print it.
type Description struct {
	ResourceType string
	ResourceID   string
	// Part of the stream's subject that the fact is about, empty for the whole; nil if later facts do not need its name.
	Part *string
	// Name of the resource, nil if the fact does not have it. People have none: their names are in the directory alone.
	Name       *string
	NameIsRole bool   // Name is the role of a member
	Gone       string // the field that Name was, if the fact removes the part
	// Environment is the name that the environment had; nil for a fact about none.
	Environment *string
	Changes     Changes
	Names       Names // for words about variations and rules, if the caller knows the flag's
}

// ResourceTypes lists the types of resources: one for each kind of stream and for each part of a tenant.
func ResourceTypes() (types []string) {
	for _, prefix := range events.StreamPrefixes() {
		types = append(types, strings.TrimSuffix(prefix, "-"))
	}
	return append(types, "environment", "evaluation_key", "member", "oauth_client", "subscription")
}

// describers describe the facts of each kind of stream. The errors are for facts of another kind.
var describers = events.NewByStream(describeFlag, describeProject, describeTenant, describeUser, describeInvitation,
	describeSegment)

// Describe describes a fact. The error is for a fact that this program does not know, or that does not belong into its
// stream.
func Describe(e events.Recorded) (Description, error) {
	if e.Err != nil {
		return Description{}, e.Err
	}
	describe, known := describers.Lookup(e.Stream)
	if !known {
		return Description{}, notOfStream(e)
	}
	return describe(e)
}

// notOfStream returns the error for a fact that does not belong into its stream.
func notOfStream(e events.Recorded) error {
	return fmt.Errorf("%s in stream %s is no fact of such a stream", e.Name, e.Stream)
}

// whole is the Part that stands for all of a stream's subject.
var whole = new("")

// Changes are the fields that a fact changed, by name: variations.<id>.<field>, rules.<id>, rules.order, or the name of
// a field.
type Changes map[string]FieldChange

// FieldChange is a field before and after a fact. As JSON it has from and to.
type FieldChange struct {
	From, To any
	has      changeSides
}

type changeSides uint8

const (
	bothSides changeSides = iota
	newAlone              // the fact does not have the former value
	neither               // the values are in the directory alone
)

// Added reports whether the field, or the variation or rule that it is, was not there before. A fallthrough that is not
// set is a value.
func (c FieldChange) Added() bool { return c.From == nil }

// Removed reports whether it is not there any more.
func (c FieldChange) Removed() bool { return c.has == bothSides && c.To == nil }

// MarshalJSON writes an object with from and to, without those that the fact does not have.
func (c FieldChange) MarshalJSON() ([]byte, error) {
	switch c.has {
	case newAlone:
		return events.Marshal(struct {
			To any `json:"to"`
		}{c.To})
	case neither:
		return []byte("{}"), nil
	default:
		return events.Marshal(struct {
			From any `json:"from"`
			To   any `json:"to"`
		}{c.From, c.To})
	}
}

// JSON returns the changes as an object.
func (d Changes) JSON() (json.RawMessage, error) { return events.Marshal(d) }

// Fields returns the names of the fields in order.
func (d Changes) Fields() []string { return slices.Sorted(maps.Keys(d)) }

func (d Changes) add(field string, from, to any) { d[field] = FieldChange{From: from, To: to} }

// addNew is for a field whose former value the fact does not have.
func (d Changes) addNew(field string, to any) { d[field] = FieldChange{To: to, has: newAlone} }

// addUntold is for a field whose values no fact has: they are in the directory alone.
func (d Changes) addUntold(field string) { d[field] = FieldChange{has: neither} }

// AddFormer adds what a removed part was called before, which facts before it tell.
func (d Changes) AddFormer(field, former string) { d.add(field, former, nil) }

func addChange[T any](d Changes, field string, c *events.Change[T]) {
	if c != nil {
		d.add(field, c.From, c.To)
	}
}

// to returns the new value of a field, nil if it does not change.
func to[T any](c *events.Change[T]) *T {
	if c == nil {
		return nil
	}
	return &c.To
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
