package commands

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"flagledger/events"
)

// Kind says why a command was refused.
type Kind int

// The kinds of refusal. The zero Kind is a fault of the service, not a refusal.
const (
	Internal Kind = iota
	Invalid
	Unauthenticated
	Forbidden
	NotFound
	Conflict
	PreconditionFailed
	TooMany
	Unavailable
)

// Error is a refusal: what kind, why, and which fields of the input are at fault.
type Error struct {
	Kind       Kind
	Detail     string
	Fields     map[string]string // by field, for Invalid
	Version    events.Revision   // the version that the flag has, for PreconditionFailed
	AtOnce     int               // how much may be under way at once, for a TooMany that waited in vain; 0 for others
	PerDay     int               // the daily bound that was reached; 0 if the refusal is for another reason
	UntilReset time.Duration     // to the next day, where PerDay is set
	Problem    Problem           // what tells the refusal apart from others of its kind; empty for most
	Err        error             // the cause, for the log
}

// Problem names a refusal that clients tell apart from others of its kind. It is the end of the address of the
// problem's type.
type Problem string

// MemberLeft is the refusal to add a person who left a tenant or declined its invitation.
const MemberLeft Problem = "left"

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Detail, e.Err)
	}
	return e.Detail
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf tells the kind of an error, Internal where it is no *Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

func refuse(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// dayOf is the beginning of a day in UTC.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// TooManyToday refuses what has reached a bound of each day in UTC. reached says so, and the detail adds when the next
// day begins.
func TooManyToday(bound int, now time.Time, reached string) error {
	tomorrow := dayOf(now).Add(24 * time.Hour)
	return &Error{
		Kind: TooMany, PerDay: bound, UntilReset: tomorrow.Sub(now),
		Detail: fmt.Sprintf("%s; the next day begins at %s", reached, tomorrow.Format(time.RFC3339)),
	}
}

// errBusy refuses what has waited for others for writeTimeout. So many of them go on at once.
func errBusy(atOnce int, others string) error {
	return &Error{
		Kind:   TooMany,
		Detail: fmt.Sprintf("%s; this one waited for %v and was not made", others, writeTimeout),
		AtOnce: atOnce,
	}
}

// fields collects what is wrong with an input, so that all of it is told at once.
type fields map[string]string

// check notes a message on a field unless the condition holds or the field has one already.
func (f fields) check(ok bool, field, format string, args ...any) {
	if _, noted := f[field]; !ok && !noted {
		f[field] = fmt.Sprintf(format, args...)
	}
}

// MergeFieldErrors joins the fields that are wrong with a request and err, which may be nil:
//
//   - An Invalid err gets them beside its own, without the parts of a field that is wrong as a whole.
//   - They replace a nil or Conflict err, and a TooMany of a day.
//   - Any other err is returned as it is.
func MergeFieldErrors(wrong map[string]string, err error) error {
	if len(wrong) == 0 {
		return err
	}
	all := fields{}
	maps.Copy(all, wrong)
	if err == nil {
		return all.err()
	}
	refusal, ok := errors.AsType[*Error](err)
	switch {
	case ok && (refusal.Kind == Conflict || refusal.Kind == TooMany && refusal.PerDay > 0):
		return all.err()
	case !ok || refusal.Kind != Invalid:
		return err
	}
	for field, text := range refusal.Fields {
		all.check(fields(wrong).holds(field), field, "%s", text)
	}
	return all.err()
}

// holds reports whether a field or one that it is part of is noted.
func (f fields) holds(field string) bool {
	for i := len(field); i > 0; i = strings.LastIndexAny(field[:i], ".[") {
		if _, noted := f[field[:i]]; noted {
			return true
		}
	}
	return false
}

// err is nil where nothing was noted.
func (f fields) err() error {
	if len(f) == 0 {
		return nil
	}
	return invalid(f)
}

func invalid(wrong map[string]string) *Error {
	return &Error{Kind: Invalid, Detail: "validation failed", Fields: wrong}
}

// InvalidField refuses an input of which one field is wrong.
func InvalidField(field, text string) *Error { return invalid(map[string]string{field: text}) }

// InvalidLink refuses the token of a mailed link.
func InvalidLink() *Error {
	return InvalidField("token", "is not valid: it has been used, has expired, or never was")
}
