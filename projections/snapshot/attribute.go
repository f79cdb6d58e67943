package snapshot

import (
	"strings"

	"flagledger/events"
)

// attribute is where in a context to look.
type attribute struct {
	name         string
	path         []string // nil where the name has no dot, or where it would reach into the targeting key
	targetingKey bool
}

func newAttribute(name string) attribute {
	a := attribute{name: name, targetingKey: name == events.TargetingKey}
	if path := strings.Split(name, "."); len(path) > 1 && path[0] != events.TargetingKey {
		a.path = path
	}
	return a
}

// of finds the attribute, nil where it is absent. One whose own name has the dots comes before one that the path leads to.
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
