package flagd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"flagledger/events"
)

// selector says which flags a client wants.
type selector struct{ environment, project, tag string }

var errSelector = errors.New("flagd-selector must be a list of environment=, project= and tag=, such as " +
	"environment=staging,tag=checkout")

// selectorHeader is the header that precedes the selector in a message.
const selectorHeader = "Flagd-Selector"

// EnvironmentOf returns the environment that the selector in a call's header names, or "".
func EnvironmentOf(header http.Header) string {
	s, err := parseSelector(header.Get(selectorHeader))
	if err != nil {
		return ""
	}
	return s.environment
}

// parseSelector reads a list such as environment=staging,project=<id>,tag=checkout. All parts are optional.
func parseSelector(text string) (s selector, err error) {
	if text == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(part), "=")
		fields := map[string]*string{"environment": &s.environment, "project": &s.project, "tag": &s.tag}
		field := fields[name]
		switch {
		case field == nil || !found || value == "":
			return s, errSelector
		case *field != "":
			return s, fmt.Errorf("flagd-selector has %s= twice", name)
		}
		*field = value
	}
	s.project = events.CanonicalID(s.project)
	return s, nil
}
