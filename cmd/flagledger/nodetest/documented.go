package nodetest

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

// documented are the operations, once for all services: they do not differ.
var documented struct {
	sync.Once
	operations map[string]map[string]any
}

// checkDocumented checks that the document tells of an answer that a call got.
func (s *Service) checkDocumented(a *Answer) {
	s.T.Helper()
	if _, benchmark := s.T.(*testing.B); benchmark || strings.HasSuffix(a.Call, "/openapi.json") {
		return
	}
	documented.Do(func() { _, documented.operations = s.Anonymous().Document() })
	method, path, _ := strings.Cut(a.Call, " ")
	path, _, _ = strings.Cut(path, "?")
	name := ""
	for candidate := range documented.operations {
		template, ok := strings.CutPrefix(candidate, method+" ")
		// Of two that fit, the one is meant whose words stand in place of the other's parameters.
		if ok && fits(template, path) && (name == "" || strings.Count(candidate, "{") < strings.Count(name, "{")) {
			name = candidate
		}
	}
	if name == "" || strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") { // which net/http answers by itself
		return
	}
	responses, _ := documented.operations[name]["responses"].(map[string]any)
	if responses[strconv.Itoa(a.Status)] == nil && responses["default"] == nil {
		s.T.Errorf("%s is not documented to answer %d: %s", name, a.Status, a.Body)
	}
}

// fits reports whether a path is one of a template.
func fits(template, path string) bool {
	t, p := strings.Split(template, "/"), strings.Split(path, "/")
	if len(t) != len(p) {
		return false
	}
	for i := range t {
		if t[i] != p[i] && (!strings.HasPrefix(t[i], "{") || p[i] == "") {
			return false
		}
	}
	return true
}
