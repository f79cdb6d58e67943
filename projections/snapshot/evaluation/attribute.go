package evaluation

import (
	"strings"
	"time"

	"flagledger/events"
)

// attribute is the name of an attribute, prepared for lookups.
type attribute struct {
	name         string
	path         []string // nil if the name has no dot, or begins with the targeting key or the reserved prefix
	targetingKey bool
	reserved     bool
}

func newAttribute(name string) attribute {
	a := attribute{
		name: name, targetingKey: name == events.TargetingKey, reserved: strings.HasPrefix(name, events.ReservedPrefix),
	}
	if path := strings.Split(name, "."); len(path) > 1 && path[0] != events.TargetingKey && !a.reserved {
		a.path = path
	}
	return a
}

// of returns the attribute's value, or nil. An attribute whose own name contains the dots takes precedence over the
// path.
func (a *attribute) of(x *Context) any {
	if a.reserved {
		return x.reserved(a.name)
	}
	value, found := x.Attributes[a.name]
	if found || a.path == nil {
		return value
	}
	value = x.Attributes
	for _, step := range a.path {
		object, _ := value.(map[string]any)
		value = object[step]
	}
	return value
}

// reserved returns the value of a reserved attribute, nil for an unknown one.
func (x *Context) reserved(name string) any {
	switch name {
	case events.EnvironmentAttribute:
		if x.Environment != "" {
			return x.Environment
		}
	case events.NowAttribute:
		return x.now().Format(time.RFC3339Nano)
	}
	return nil
}

// now returns the time of the evaluation, which is the same until the context changes. The answer then depends on it.
func (x *Context) now() time.Time {
	if x.Now.IsZero() {
		x.Now = time.Now().UTC().Truncate(time.Microsecond)
	}
	x.asked.any, x.asked.now = true, x.Now
	return x.Now
}
