package nodetest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documented is the OpenAPI document, once for all services: it does not differ but for its URL. Schemas are compiled
// when they are first needed.
var documented struct {
	sync.Once
	whole      map[string]any
	operations map[string]map[string]any
	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	schemas    map[string]*jsonschema.Schema // by their place in the document
}

// largestChecked is the most bytes of a body whose members are compared with the document: a longer one is a list with
// more of the same.
const largestChecked = 256 << 10

// checkDocumented checks that the document tells of an answer that a call got: its status, its media type, and each
// member of its body.
func (s *Service) checkDocumented(a *Answer) {
	s.T.Helper()
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	// net/http answers by itself with text.
	if _, benchmark := s.T.(*testing.B); benchmark || strings.HasSuffix(a.Call, "/openapi.json") || media == "text/plain" {
		return
	}
	documented.Do(s.readDocument)
	name, place := operationOf(a.Call), []string{"components", "responses", "not-found", "content", media, "schema"}
	if strings.Contains(a.Call, " /ofrep/") {
		place[2] = "ofrep-not-found"
	}
	if name != "" {
		method, path, _ := strings.Cut(name, " ")
		status := strconv.Itoa(a.Status)
		response, _ := documented.operations[name]["responses"].(map[string]any)[status].(map[string]any)
		if response == nil {
			s.T.Errorf("%s is not documented to answer %s: %s", name, status, a.Body)
			return
		}
		place = []string{"paths", path, strings.ToLower(method), "responses", status}
		if ref, ok := response["$ref"].(string); ok {
			place = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			response = documented.whole["components"].(map[string]any)["responses"].(map[string]any)[place[2]].(map[string]any)
		}
		content, _ := response["content"].(map[string]any)
		described, _ := content[media].(map[string]any)
		if described == nil && (len(content) > 0 || len(a.Body) > 0) && a.Status != 304 {
			s.T.Errorf("%s is not documented to answer %s with a body of the type %q: %s", name, status, media, a.Body)
		}
		if described["schema"] == nil {
			return
		}
		place = append(place, "content", media, "schema")
	}
	if strings.HasPrefix(a.Call, "HEAD ") {
		return
	}
	if len(a.Body) > largestChecked {
		return
	}
	if media == "application/json" && name != "" || media == "application/problem+json" {
		s.checkSchema(a, place)
	}
}

// checkAddresses checks that what an answer of the service at a URL leads to is below the service's URL.
func (s *Service) checkAddresses(a *Answer, at *url.URL) {
	s.T.Helper()
	addresses := a.Header.Values("Location")
	for _, link := range a.Header.Values("Link") {
		address, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		addresses = append(addresses, address)
	}
	for _, address := range addresses {
		led, err := at.Parse(address)
		if err != nil || !strings.HasPrefix(led.String(), s.URL+"/") {
			s.T.Errorf("%s leads to %s, which is not below %s", a.Call, address, s.URL)
		}
	}
}

// path is the path of the service's URL, empty without one.
func (s *Service) path() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		s.T.Fatal(err)
	}
	return u.Path
}

// CheckExample checks that an example of what an operation answers, such as "GET /health", is as the document says.
func (s *Service) CheckExample(operation, status, media string, example any) {
	s.T.Helper()
	documented.Do(s.readDocument)
	body, err := json.Marshal(example)
	if err != nil {
		s.T.Fatal(err)
	}
	code, _ := strconv.Atoi(status)
	method, path, _ := strings.Cut(operation, " ")
	s.checkSchema(&Answer{T: s.T, Call: "the example of " + operation, Status: code, Body: body},
		[]string{"paths", path, strings.ToLower(method), "responses", status, "content", media, "schema"})
}

func (s *Service) readDocument() {
	s.T.Helper()
	a := s.Anonymous().Call("GET", "/openapi.json", nil).Want(200)
	documented.whole, documented.operations = s.Anonymous().Document()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
	if err != nil {
		s.T.Fatal(err)
	}
	documented.compiler, documented.schemas = jsonschema.NewCompiler(), map[string]*jsonschema.Schema{}
	documented.compiler.AssertFormat()
	for bits, name := range map[int]string{32: "int32", 64: "int64"} {
		documented.compiler.RegisterFormat(
			&jsonschema.Format{Name: name, Validate: func(v any) error { return fitsInteger(v, bits) }},
		)
	}
	if err := documented.compiler.AddResource("document", parsed); err != nil {
		s.T.Fatal(err)
	}
}

// checkSchema checks the body of an answer against the schema at a place in the document.
func (s *Service) checkSchema(a *Answer, place []string) {
	s.T.Helper()
	schema, err := schemaAt(place)
	if err != nil {
		s.T.Errorf("%s: the schema at %v of the document: %v", a.Call, place, err)
		return
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
	if err == nil {
		err = schema.Validate(body)
	}
	if err != nil {
		s.T.Errorf("%s: %d is not as documented: %v\n%s", a.Call, a.Status, err, a.Body)
	}
}

// fitsInteger reports a number that a client generated from the document could not hold.
func fitsInteger(v any, bits int) error {
	number, ok := v.(json.Number)
	if !ok {
		return nil
	}
	_, err := strconv.ParseInt(number.String(), 10, bits)
	return err
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func schemaAt(place []string) (schema *jsonschema.Schema, err error) {
	fragment := ""
	for _, name := range place {
		fragment += "/" + escapePointer.Replace(name)
	}
	documented.mu.Lock()
	defer documented.mu.Unlock()
	if schema = documented.schemas[fragment]; schema == nil {
		schema, err = documented.compiler.Compile("document#" + (&url.URL{Fragment: fragment}).EscapedFragment())
		documented.schemas[fragment] = schema
	}
	return schema, err
}

// Operation returns the operation of the document that was called, empty if the document has none.
func (a *Answer) Operation() string {
	a.T.Helper()
	return operationOf(a.Call)
}

// operationOf is the operation of the document that a call is of, empty where it is of none.
func operationOf(call string) (name string) {
	method, path, _ := strings.Cut(call, " ")
	path, _, _ = strings.Cut(path, "?")
	for candidate := range documented.operations {
		template, ok := strings.CutPrefix(candidate, method+" ")
		// Of two that fit, the one is meant whose words stand in place of the other's parameters.
		if ok && fits(template, path) && (name == "" || strings.Count(candidate, "{") < strings.Count(name, "{")) {
			name = candidate
		}
	}
	return name
}

// fits reports whether a path is one of a template.
func fits(template, path string) bool {
	if strings.Count(template, "/") != strings.Count(path, "/") { // of nearly all, so that they are not split
		return false
	}
	t, p := strings.Split(template, "/"), strings.Split(path, "/")
	for i := range t {
		if t[i] != p[i] && (!strings.HasPrefix(t[i], "{") || p[i] == "") {
			return false
		}
	}
	return true
}
