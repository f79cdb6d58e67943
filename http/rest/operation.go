package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"flagledger/commands/writer"
)

// Unwrap returns the request and the writer of its response.
func Unwrap(ctx huma.Context) (*http.Request, http.ResponseWriter) { return humachi.Unwrap(ctx) }

// Changed holds the response headers of a change.
type Changed struct {
	Preference string `header:"Preference-Applied" doc:"respond-async if lists do not show the change yet"`
}

// ChangeHeaders returns the response headers of a change.
func ChangeHeaders(done writer.Done) Changed {
	if done.Stale {
		return Changed{Preference: "respond-async"}
	}
	return Changed{}
}

// Success is the response to an action.
type Success struct {
	Success bool `json:"success" example:"true"`
}

// SuccessOutput is the whole response to an action.
type SuccessOutput struct {
	Changed
	Body Success
}

// SuccessResponse returns the response to an action.
func SuccessResponse(done writer.Done) *SuccessOutput {
	return &SuccessOutput{Changed: ChangeHeaders(done), Body: Success{true}}
}

// NoContent is the response to a DELETE.
type NoContent struct{ Changed }

// Operation returns an operation for the OpenAPI document, with the tag of its section.
func Operation(method, path, id, tag, summary string) huma.Operation {
	return huma.Operation{Method: method, Path: path, OperationID: id, Tags: []string{tag}, Summary: summary}
}

// WithExamples adds examples of an operation's request and response bodies, for which the examples of their members do
// not suffice. nil adds none.
func WithExamples(op huma.Operation, body, answer any) huma.Operation {
	if body != nil {
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Example: body}}}
	}
	if answer != nil {
		status := strconv.Itoa(cmp.Or(op.DefaultStatus, http.StatusOK))
		op.Responses = map[string]*huma.Response{
			status: {Content: map[string]*huma.MediaType{"application/json": {Example: answer}}},
		}
	}
	return op
}

func operationsOf(item *huma.PathItem) []*huma.Operation {
	return slices.DeleteFunc([]*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete},
		func(op *huma.Operation) bool { return op == nil })
}
