package nodetest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// request is a sent call.
type request struct {
	*http.Request
	path string // below the service's URL
	body []byte
	// named are the headers that the test sets. The client adds others to each call, whether or not an operation reads
	// them.
	named []string
}

// checkRequested checks that the document describes an accepted call: its parameters, headers and body.
func (s *Service) checkRequested(r request, a *Answer) {
	s.T.Helper()
	if _, benchmark := s.T.(*testing.B); benchmark || a.Status < 200 || a.Status > 299 || r.path == "/openapi.json" {
		return
	}
	openAPI.Do(s.readDocument)
	name := operationOf(a.Call)
	if name == "" { // a page, or a HEAD
		return
	}
	method, path, _ := strings.Cut(name, " ")
	place := []string{"paths", path, strings.ToLower(method)}
	for _, err := range slices.Concat(r.checkParameters(path, place, openAPI.operations[name]),
		r.checkBody(place, openAPI.operations[name])) {
		s.T.Errorf("%s is accepted, but is not as documented: %v", a.Call, err)
	}
	if secured := openAPI.operations[name]["security"]; secured != nil && len(secured.([]any)) > 0 &&
		r.Header.Get("Authorization") == "" && r.Header.Get("X-API-Key") == "" {
		s.T.Errorf("%s is accepted without a token, but the document requires one", a.Call)
	}
}

// checkParameters checks parameters in the path, the query and the headers.
func (r request) checkParameters(template string, place []string, operation map[string]any) (errs []error) {
	list, _ := operation["parameters"].([]any)
	known := map[string]bool{}
	query := r.URL.Query()
	for i, p := range list {
		parameter, at := p.(map[string]any), append(slices.Clone(place), "parameters", strconv.Itoa(i))
		in, name := parameter["in"].(string), parameter["name"].(string)
		known[in+" "+strings.ToLower(name)] = true
		var values []string
		switch in {
		case "path":
			values = []string{pathValue(template, r.path, name)}
		case "query":
			values = query[name]
		case "header":
			values = r.Header.Values(name)
		}
		if required, _ := parameter["required"].(bool); required && len(values) == 0 {
			errs = append(errs, fmt.Errorf("it lacks the %s %s", in, name))
		}
		schema, _ := parameter["schema"].(map[string]any)
		for _, value := range values {
			if err := validate(append(at, "schema"), parseText(value, schema)); err != nil {
				errs = append(errs, fmt.Errorf("the %s %s is %q: %w", in, name, value, err))
			}
		}
	}
	for name := range query {
		if !known["query "+strings.ToLower(name)] {
			errs = append(errs, fmt.Errorf("the parameter %s is not in the document", name))
		}
	}
	for _, name := range r.named {
		if !slices.Contains(everywhere, http.CanonicalHeaderKey(name)) && !known["header "+strings.ToLower(name)] {
			errs = append(errs, fmt.Errorf("the header %s is not in the document", name))
		}
	}
	return errs
}

// everywhere lists the headers that HTTP itself or the document's introduction define for all operations.
var everywhere = []string{
	"Accept",
	"Accept-Encoding",
	"Authorization",
	"Content-Type",
	"Origin",
	"X-Api-Key",
	"X-Forwarded-For",
	"X-Request-Id",
	"X-Correlation-Id",
}

func (r request) checkBody(place []string, operation map[string]any) []error {
	described, _ := operation["requestBody"].(map[string]any)
	required, _ := described["required"].(bool)
	switch {
	case len(r.body) == 0 && required:
		return []error{fmt.Errorf("it has no body")}
	case len(r.body) == 0:
		return nil
	case described == nil:
		return []error{fmt.Errorf("it has a body: %s", r.body)}
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	content, _ := described["content"].(map[string]any)
	if content[media] == nil {
		return []error{fmt.Errorf("its body is of the type %q", media)}
	}
	var body any
	if media == "text/csv" {
		return nil // any text
	}
	if media == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(r.body))
		if err != nil {
			return []error{err}
		}
		members := map[string]any{}
		for name, values := range form {
			members[name] = values[0]
		}
		body = members
	} else {
		var err error
		if body, err = jsonschema.UnmarshalJSON(bytes.NewReader(r.body)); err != nil {
			return []error{err}
		}
	}
	if err := validate(append(slices.Clone(place), "requestBody", "content", media, "schema"), body); err != nil {
		return []error{fmt.Errorf("the body %s: %w", r.body, err)}
	}
	return nil
}

func validate(place []string, value any) error {
	schema, err := schemaAt(place)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// pathValue returns the value of a template's parameter in a path.
func pathValue(template, path, name string) string {
	parts := strings.Split(path, "/")
	for i, part := range strings.Split(template, "/") {
		if part == "{"+name+"}" && i < len(parts) {
			value, _ := url.PathUnescape(parts[i])
			return value
		}
	}
	return ""
}

// parseText returns the value that a text represents by a schema.
func parseText(text string, schema map[string]any) any {
	switch schema["type"] {
	case "integer", "number", "boolean":
		if value, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			return value
		}
	}
	return text
}
