package evaluation

import (
	"strings"

	"flagledger/events"
)

// attribute is the name of an attribute, prepared for lookups.
type attribute struct {
	name         string
	path         []string // nil if the name has no dot, or begins with the targeting key
	targetingKey bool
}

func newAttribute(name string) attribute {
	a := attribute{name: name, targetingKey: name == events.TargetingKey}
	if path := strings.Split(name, "."); len(path) > 1 && path[0] != events.TargetingKey {
		a.path = path
	}
	return a
}

// of returns the attribute's value, or nil. An attribute whose own name contains the dots takes precedence over the
// path.
func (a *attribute) of(x *Context) any {
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
