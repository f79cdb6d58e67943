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

// openAPI is the OpenAPI document, shared by all services because only its URL differs. Schemas are compiled on
// first use.
var openAPI struct {
	sync.Once
	whole      map[string]any
	operations map[string]map[string]any
	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	schemas    map[string]*jsonschema.Schema // by their place in the document
}

// largestChecked is the largest body that is validated. Larger ones are long lists of equal entries.
const largestChecked = 256 << 10

// checkDocumented checks that the document describes a response: its status, media type and each member of its body.
func (s *Service) checkDocumented(a *Answer) {
	s.T.Helper()
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	// net/http itself responds with text.
	if _, benchmark := s.T.(*testing.B); benchmark || strings.HasSuffix(a.Call, "/openapi.json") || media == "text/plain" {
		return
	}
	openAPI.Do(s.readDocument)
	name, place := operationOf(a.Call), []string{"components", "responses", "not-found", "content", media, "schema"}
	if strings.Contains(a.Call, " /ofrep/") {
		place[2] = "ofrep-not-found"
	}
	if name != "" {
		method, path, _ := strings.Cut(name, " ")
		status := strconv.Itoa(a.Status)
		response, _ := openAPI.operations[name]["responses"].(map[string]any)[status].(map[string]any)
		if response == nil {
			s.T.Errorf("%s returns the undocumented status %s: %s", name, status, a.Body)
			return
		}
		place = []string{"paths", path, strings.ToLower(method), "responses", status}
		if ref, ok := response["$ref"].(string); ok {
			place = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			response = openAPI.whole["components"].(map[string]any)["responses"].(map[string]any)[place[2]].(map[string]any)
		}
		content, _ := response["content"].(map[string]any)
		described, _ := content[media].(map[string]any)
		if described == nil && (len(content) > 0 || len(a.Body) > 0) && a.Status != 304 {
			s.T.Errorf("%s returns %s with the undocumented media type %q: %s", name, status, media, a.Body)
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

// checkAddresses checks that the links in a response are below the service's URL.
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
			s.T.Errorf("%s links to %s, which is not below %s", a.Call, address, s.URL)
		}
	}
}

// path returns the path of the service's URL, or "".
func (s *Service) path() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		s.T.Fatal(err)
	}
	return u.Path
}

// CheckExample checks that an example response of an operation, such as "GET /health", matches the document.
func (s *Service) CheckExample(operation, status, media string, example any) {
	s.T.Helper()
	openAPI.Do(s.readDocument)
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
	openAPI.whole, openAPI.operations = s.Anonymous().Document()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
	if err != nil {
		s.T.Fatal(err)
	}
	openAPI.compiler, openAPI.schemas = jsonschema.NewCompiler(), map[string]*jsonschema.Schema{}
	openAPI.compiler.AssertFormat()
	for bits, name := range map[int]string{32: "int32", 64: "int64"} {
		openAPI.compiler.RegisterFormat(
			&jsonschema.Format{Name: name, Validate: func(v any) error { return fitsInteger(v, bits) }},
		)
	}
	if err := openAPI.compiler.AddResource("document", parsed); err != nil {
		s.T.Fatal(err)
	}
}

// checkSchema checks the body of a response against the schema at a place in the document.
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

// fitsInteger reports a number that is too large for a client generated from the document.
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
	openAPI.mu.Lock()
	defer openAPI.mu.Unlock()
	if schema = openAPI.schemas[fragment]; schema == nil {
		schema, err = openAPI.compiler.Compile("document#" + (&url.URL{Fragment: fragment}).EscapedFragment())
		openAPI.schemas[fragment] = schema
	}
	return schema, err
}

// Operation returns the operation of the document that was called, or "".
func (a *Answer) Operation() string {
	a.T.Helper()
	return operationOf(a.Call)
}

// operationOf returns the document's operation for a call, or "".
func operationOf(call string) (name string) {
	method, path, _ := strings.Cut(call, " ")
	path, _, _ = strings.Cut(path, "?")
	for candidate := range openAPI.operations {
		template, ok := strings.CutPrefix(candidate, method+" ")
		// If several match, the one with fewer parameters wins.
		if ok && fits(template, path) && (name == "" || strings.Count(candidate, "{") < strings.Count(name, "{")) {
			name = candidate
		}
	}
	return name
}

// fits reports whether a path matches a template.
func fits(template, path string) bool {
	if strings.Count(template, "/") != strings.Count(path, "/") { // skips the split of most paths
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
