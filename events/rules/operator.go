// Package rules defines the language of targeting rules: the operators, and how their values are parsed. Commands
// check rules with it before they are stored, and the snapshot compiles them with it.
package rules

import (
	"slices"

	"flagledger/events"
)

// Kind is the kind of values of an operator.
type Kind int

// The kinds of values.
const (
	NoValue Kind = iota
	Scalar       // a string, a number or a boolean
	Text
	Pattern // a regular expression of RE2's syntax
	Number
	Time
	Version
	SegmentKey
)

// Relation is the required result of comparing an attribute with one of the values.
type Relation int

// The relations.
const (
	Present Relation = iota // exists and is not null
	Equal
	Contains
	StartsWith
	EndsWith
	Matches
	Greater
	GreaterEqual
	Less
	LessEqual
	Member // of a segment
)

// Operator says how a condition compares. docs/rules.md explains each operator.
type Operator struct {
	Name     events.Operator
	Values   Kind
	Relation Relation
}

// operators is the only list of operators, in display order.
var operators = []Operator{
	{events.In, Scalar, Equal},
	{events.Contains, Text, Contains},
	{events.StartsWith, Text, StartsWith},
	{events.EndsWith, Text, EndsWith},
	{events.Matches, Pattern, Matches},
	{events.Greater, Number, Greater},
	{events.GreaterEqual, Number, GreaterEqual},
	{events.Less, Number, Less},
	{events.LessEqual, Number, LessEqual},
	{events.Before, Time, Less},
	{events.After, Time, Greater},
	{events.SemverEqual, Version, Equal},
	{events.SemverGreater, Version, Greater},
	{events.SemverAtLeast, Version, GreaterEqual},
	{events.SemverLess, Version, Less},
	{events.SemverAtMost, Version, LessEqual},
	{events.Exists, NoValue, Present},
	{events.InSegment, SegmentKey, Member},
}

// Operators returns all operators in display order.
func Operators() []Operator { return slices.Clone(operators) }

// HasAttribute reports whether the operator compares an attribute: in_segment asks about the whole context.
func (o Operator) HasAttribute() bool { return o.Values != SegmentKey }

// Find returns the operator with a name, and false if there is none.
func Find(name events.Operator) (Operator, bool) {
	for _, o := range operators {
		if o.Name == name {
			return o, true
		}
	}
	return Operator{}, false
}
