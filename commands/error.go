package commands

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"flagledger/events"
)

// Kind classifies a refusal.
type Kind int

// Kinds of refusal. The zero Kind is an internal error, not a refusal.
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

// Error is a refusal with its kind, its reason and the wrong fields.
type Error struct {
	Kind       Kind
	Detail     string
	Fields     map[string]string // by field, for Invalid
	Version    events.Revision   // the flag's current version, for PreconditionFailed
	AtOnce     int               // the concurrency limit, for a TooMany after a timeout; else 0
	PerDay     int               // the daily limit that was reached; else 0
	UntilReset time.Duration     // until the next day, if PerDay is set
	Problem    Problem           // distinguishes the refusal from others of its kind; usually empty
	Err        error             // the cause, for the log
}

// Problem names a refusal that clients distinguish from others of its kind. It is the end of the problem type's URI.
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

// KindOf returns the kind of an error, Internal if it is not an *Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Refuse returns a refusal of a kind.
func Refuse(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// DayOf returns the beginning of a day in UTC.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// TooManyToday returns the refusal for a daily limit. reached describes it; the detail adds when the next day begins.
func TooManyToday(bound int, now time.Time, reached string) error {
	tomorrow := DayOf(now).Add(24 * time.Hour)
	return &Error{
		Kind: TooMany, PerDay: bound, UntilReset: tomorrow.Sub(now),
		Detail: fmt.Sprintf("%s; the next day begins at %s", reached, tomorrow.Format(time.RFC3339)),
	}
}

// FieldErrors collects all wrong fields of an input with their messages.
type FieldErrors map[string]string

// Check adds a message to a field unless ok is true or the field has one.
func (f FieldErrors) Check(ok bool, field, format string, args ...any) {
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
	all := FieldErrors{}
	maps.Copy(all, wrong)
	if err == nil {
		return all.Err()
	}
	refusal, ok := errors.AsType[*Error](err)
	switch {
	case ok && (refusal.Kind == Conflict || refusal.Kind == TooMany && refusal.PerDay > 0):
		return all.Err()
	case !ok || refusal.Kind != Invalid:
		return err
	}
	for field, text := range refusal.Fields {
		all.Check(FieldErrors(wrong).holds(field), field, "%s", text)
	}
	return all.Err()
}

// holds reports whether a field or one of its parents has a message.
func (f FieldErrors) holds(field string) bool {
	for i := len(field); i > 0; i = strings.LastIndexAny(field[:i], ".[") {
		if _, noted := f[field[:i]]; noted {
			return true
		}
	}
	return false
}

// Err returns the refusal, or nil without messages.
func (f FieldErrors) Err() error {
	if len(f) == 0 {
		return nil
	}
	return InvalidFields(f)
}

// InvalidFields returns the refusal of an input with wrong fields.
func InvalidFields(wrong map[string]string) *Error {
	return &Error{Kind: Invalid, Detail: "validation failed", Fields: wrong}
}

// InvalidField returns the refusal of an input with one wrong field.
func InvalidField(field, text string) *Error { return InvalidFields(map[string]string{field: text}) }

// InvalidLink returns the refusal of a mailed link's token.
func InvalidLink() *Error {
	return InvalidField("token", "is not valid: it has been used, has expired, or never was")
}
