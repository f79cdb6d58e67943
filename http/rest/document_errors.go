package rest

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// errorShape is the format of some operations' errors.
type errorShape struct {
	prefix string // of the response names in the OpenAPI document
	media  string
	body   any
	show   func(Problem) any // returns the example of a body
}

var (
	problemShape = errorShape{"", "application/problem+json", Problem{}, func(p Problem) any { return p }}
	ofrepShape   = errorShape{"ofrep-", "application/problem+json", ofrepProblem{}, func(p Problem) any {
		code := ofrepGeneral
		switch p.Status {
		case http.StatusBadRequest:
			code = ofrepTargetingKeyMissing
			p.Detail = "targetingKey is required: the flag splits its traffic by it"
		case http.StatusNotFound:
			code = ofrepFlagNotFound
			p.Detail = "there is no flag new-checkout"
		}
		return ofrepProblem{problemBody(p), OFREPFailure{"new-checkout", code, p.Detail}}
	}}
	grantShape = errorShape{"oauth-", "application/json", grantProblem{}, func(p Problem) any {
		if p.Status == http.StatusUnauthorized {
			p.Detail = "the client's id or secret is wrong"
		}
		p.asOAuth()
		return p
	}}
)

// shapeOf returns the format of a path's errors.
func shapeOf(path string) errorShape {
	switch {
	case strings.HasPrefix(path, OFREPManyRoute):
		return ofrepShape
	case path == GrantRoute || path == LegacyGrantRoute:
		return grantShape
	default:
		return problemShape
	}
}

// DescribeErrors adds to each operation the errors that its parameters and security imply. Each error is described
// once.
func (a *Core) DescribeErrors(doc *huma.OpenAPI) {
	doc.Components.Responses = map[string]*huma.Response{}
	for path, item := range doc.Paths {
		shape := shapeOf(path)
		for _, op := range operationsOf(item) {
			statuses := errorsOf(op)
			for name, response := range op.Responses {
				if response.Content["application/problem+json"] == nil {
					continue
				}
				delete(op.Responses, name)
				if status, err := strconv.Atoi(name); err == nil {
					statuses = append(statuses, status)
				}
			}
			for _, status := range statuses {
				name := shape.prefix + kinds[status].name
				if doc.Components.Responses[name] == nil {
					doc.Components.Responses[name] = a.describe(status, shape)
				}
				if number := strconv.Itoa(status); op.Responses[number] == nil {
					op.Responses[number] = &huma.Response{Ref: "#/components/responses/" + name}
				}
			}
		}
	}
}

// describe describes an error with its headers and an example.
func (a *Core) describe(status int, shape errorShape) *huma.Response {
	kind := kinds[status]
	example := Problem{
		Type: a.PublicURL + "/problems/" + kind.name, Title: kind.title, Status: status, Detail: kind.example,
		Instance: "urn:uuid:0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b", headers: http.Header{},
	}
	headers := map[string]*huma.Param{}
	header := func(name, doc string) {
		headers[name] = &huma.Param{Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	header("X-Request-ID", "The request's id, for searching the log")
	switch status {
	case http.StatusUnauthorized:
		header("WWW-Authenticate", "How to authenticate: Bearer, or Basic at the token endpoint")
	case http.StatusPreconditionFailed:
		header("ETag", "The current version of the resource")
	case http.StatusUnprocessableEntity:
		example.Errors = map[string]string{"name": "is required and must not be empty"}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		header("Retry-After", "Seconds until the next attempt")
	}
	schema := a.Huma.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(shape.body), true, "")
	return &huma.Response{
		Description: kind.text, Headers: headers,
		Content: map[string]*huma.MediaType{shape.media: {Schema: schema, Example: shape.show(example)}},
	}
}

// errorsOf returns the error statuses that an operation's parameters and security imply.
func errorsOf(op *huma.Operation) []int {
	errors := append(slices.Clone(op.Errors),
		http.StatusBadRequest, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable)
	if len(op.Security) > 0 {
		errors = append(errors, http.StatusUnauthorized, http.StatusForbidden)
	}
	if op.RequestBody != nil {
		errors = append(errors, http.StatusUnsupportedMediaType)
	}
	for _, p := range op.Parameters {
		switch {
		case p.In == "path" || p.Name == "X-Environment":
			errors = append(errors, http.StatusNotFound)
		case p.Name == "If-Match":
			errors = append(errors, http.StatusPreconditionFailed)
		case p.Name == "Idempotency-Key":
			errors = append(errors, http.StatusConflict)
		}
	}
	return errors
}

// problemWith returns the schema of a problem with more members.
func problemWith(r huma.Registry, more any) *huma.Schema {
	both, added := huma.SchemaFromType(r, reflect.TypeFor[Problem]()), huma.SchemaFromType(r, reflect.TypeOf(more))
	maps.Copy(both.Properties, added.Properties)
	both.Required = append(both.Required, added.Required...)
	both.PrecomputeMessages()
	return both
}

// AllowNull adds null to the enums of nullable members: huma adds it only to their types.
func AllowNull(schema *huma.Schema) {
	if schema.Nullable && len(schema.Enum) > 0 && !slices.Contains(schema.Enum, nil) {
		schema.Enum = append(slices.Clone(schema.Enum), nil)
	}
	for _, inner := range schema.Properties {
		AllowNull(inner)
	}
	if schema.Items != nil {
		AllowNull(schema.Items)
	}
}
