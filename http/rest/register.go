package rest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Register adds an operation under its path and its legacy paths. It panics if need.Who is not set.
func Register[I, O any](a *Core, need Access, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	for _, old := range Aliases(op) {
		serve(a, need, old, handle)
	}
	serve(a, need, op, handle)
}

func serve[I, O any](a *Core, need Access, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	if need.Who == 0 || need.Scope != "" && need.Who < Viewer {
		panic("the operation " + op.Method + " " + op.Path + " does not define who may call it")
	}
	need.MaxBody = cmp.Or(need.MaxBody, maxBody)
	// The guard has limited the body. The JSON that it makes of CSV is up to twice as large.
	op.MaxBodyBytes, op.SkipValidateBody = 2*int64(need.MaxBody)+1, true
	// The guard has read the body. A deadline would cancel this and later requests of the connection.
	op.BodyReadTimeout = -1
	op.Errors = append(slices.Clone(op.Errors), http.StatusUnprocessableEntity)
	if need.Who != Anyone {
		op.Security = need.Security()
	}
	if op.Method == http.MethodGet {
		need.Unverified = true
	}
	g := &guard{
		api:         a,
		need:        need,
		acceptsKeys: need.Who != Anyone && op.Method != http.MethodGet,
		parameters:  pathParameters(op.Path),
	}
	if g.acceptsKeys {
		op.Parameters = append(slices.Clone(op.Parameters), keyParameter)
	}
	op.Middlewares = append(slices.Clone(op.Middlewares), g.steps()...)
	huma.Register(a.Huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := inSlot(ctx, g, op.Method, func() (*O, error) { return handle(ctx, in) })
		if err := AddBodyErrors(ctx, err); err != nil {
			return nil, ProblemOf(ctx, err)
		}
		return out, nil
	})
	documented := documentedOperation(a.Huma.OpenAPI(), op)
	g.times = timesOf(documented)
	if documented.RequestBody != nil {
		g.body = documented.RequestBody.Content["application/json"].Schema
	}
	if need.RequireTenant {
		requireHeader(documented, "X-Tenant-ID")
	}
}

// Security returns the security requirements of an operation for the OpenAPI document.
func (need Access) Security() []map[string][]string {
	ways := []map[string][]string{{"bearer": {}}}
	if need.Scope != "" {
		ways = append(ways, map[string][]string{"oauth": {string(need.Scope)}})
	}
	if slices.Contains(keyScopes, need.Scope) {
		ways = append(ways, map[string][]string{"evaluationKey": {}})
	}
	return ways
}

// pathParameters returns the names between braces in a path.
func pathParameters(path string) (names []string) {
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// documentedOperation returns an operation in the OpenAPI document.
func documentedOperation(doc *huma.OpenAPI, op huma.Operation) *huma.Operation {
	all := operationsOf(doc.Paths[op.Path])
	return all[slices.IndexFunc(all, func(o *huma.Operation) bool { return o.Method == op.Method })]
}

// requireHeader marks a header as required in the OpenAPI document. Admit enforces it, not huma.
func requireHeader(op *huma.Operation, name string) {
	i := slices.IndexFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	if i < 0 {
		panic("the operation " + op.Method + " " + op.Path + " does not show " + name)
	}
	op.Parameters[i].Required = true
}
