package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// legacyRoute is a legacy path of an operation. It has the same access as its successor.
type legacyRoute struct {
	methods, path string
	successor     string // the path of the operation that replaces it, with the same methods
	difference    string // of its bodies, for the OpenAPI document; a route without one is an alias
}

// legacyRoutes lists all legacy paths. They will be removed: new integrations use their successors.
var legacyRoutes = []legacyRoute{
	{"POST", LegacyGrantRoute, GrantRoute, ""},
	{"POST", "/auth/signin", "/api/v1/auth/login", "It accepts an address and a password, and returns tokens."},
	{"POST", "/auth/signup", "/api/v1/auth/signup", "It accepts an address and a password, and returns tokens."},
	{"POST", "/auth/google", "/api/v1/auth/signin/google", "It takes no `providerName`."},
	{"POST", "/auth/microsoft", "/api/v1/auth/signin/microsoft", "It takes no `providerName`."},

	{"GET POST", "/api/flags", "/api/v1/flags", ""},
	{"GET PATCH DELETE", "/api/flags/{flagKey}", "/api/v1/flags/{flagKey}", ""},
	{"POST", "/api/flags/{flagKey}/enable", "/api/v1/flags/{flagKey}/enable", ""},
	{"POST", "/api/flags/{flagKey}/disable", "/api/v1/flags/{flagKey}/disable", ""},
	{"POST", LegacyEvaluateRoute, EvaluateRoute, "Its `userId` is now `targetingKey`."},
	{"GET", "/api/flags/{flagKey}/history", "/api/v1/flags/{flagKey}/history", ""},
	{"GET POST", "/api/flags/{flagKey}/variations", "/api/v1/flags/{flagKey}/variations", ""},
	{
		"PATCH DELETE",
		"/api/flags/{flagKey}/variations/{variationId}",
		"/api/v1/flags/{flagKey}/variations/{variationId}",
		"",
	},
	{"GET POST", "/api/flags/projects/{projectId}/flags", "/api/v1/flags/projects/{projectId}/flags", ""},
	{
		"GET PATCH DELETE",
		"/api/flags/projects/{projectId}/flags/{flagKey}",
		"/api/v1/flags/projects/{projectId}/flags/{flagKey}",
		"",
	},
	{
		"POST",
		"/api/flags/projects/{projectId}/flags/{flagKey}/enable",
		"/api/v1/flags/projects/{projectId}/flags/{flagKey}/enable",
		"",
	},
	{
		"POST",
		"/api/flags/projects/{projectId}/flags/{flagKey}/disable",
		"/api/v1/flags/projects/{projectId}/flags/{flagKey}/disable",
		"",
	},

	{"GET POST", "/api/projects", "/api/v1/projects", ""},
	{"GET PATCH DELETE", "/api/projects/{projectId}", "/api/v1/projects/{projectId}", ""},
	{"GET POST", "/api/tenants", "/api/v1/tenants", ""},
	{"GET PATCH DELETE", "/api/tenants/{tenantId}", "/api/v1/tenants/{tenantId}", ""},
	{"GET POST", "/api/tenants/{tenantId}/users", "/api/v1/tenants/{tenantId}/users", ""},
	{"PATCH DELETE", "/api/tenants/{tenantId}/users/{userId}", "/api/v1/tenants/{tenantId}/users/{userId}", ""},

	{"GET POST", "/api/oauth/clients", "/api/v1/oauth/clients", ""},
	{"DELETE", "/api/oauth/clients/{clientId}", "/api/v1/oauth/clients/{clientId}", ""},
	{"POST", "/api/oauth/clients/{clientId}/rotate", "/api/v1/oauth/clients/{clientId}/rotate", ""},

	{
		"POST",
		LegacyCheckoutRoute,
		CheckoutRoute,
		"It has the plans `free`, `standard` and `premium`, and returns `url`. `free` returns the page that cancels the " +
			"subscription, or `successUrl` if there is none.",
	},
	{"POST", "/api/billing/portal", "/api/v1/billing/portal", ""},
	{"GET", "/api/billing/subscription", "/api/v1/billing/subscription", ""},

	{"GET", "/api/notifications", "/api/v1/notifications", ""},
	{"PATCH", "/api/notifications/read-all", "/api/v1/notifications/read-all", ""},
	{"DELETE", "/api/notifications/clear", "/api/v1/notifications/clear", ""},
	{"GET POST", "/api/notifications/device-tokens", "/api/v1/notifications/device-tokens", ""},
	{"POST", "/api/notifications/send", "/api/v1/notifications/send", ""},

	{"GET", "/api/sandbox/status", "/api/v1/sandbox/status", ""},
	{"GET", "/api/sandbox/indicators", "/api/v1/sandbox/indicators", ""},
	{"GET", "/api/sandbox/demo-data", "/api/v1/sandbox/demo-data", ""},

	{"GET", "/v1/users/{userId}/product-tours/{tourKey}", "/api/v1/users/{userId}/product-tours/{tourKey}", ""},

	{"GET", "/admin/users", "/api/v1/admin/users", "Roles are `super_admin` and `vendor_support`."},
	{
		"PATCH",
		"/admin/users/{userId}/role",
		"/api/v1/admin/users/{userId}/role",
		"Roles are `super_admin` and `vendor_support`.",
	},
	{"POST", "/admin/invitations", "/api/v1/admin/invitations", "Roles are `super_admin` and `vendor_support`."},
	{
		"POST",
		"/admin/invite",
		"/api/v1/admin/invitations",
		"For a tenant, use POST /api/v1/tenants/{tenantId}/users. Its roles are `admin` and `user`.",
	},
}

func (l legacyRoute) has(method string) bool {
	return slices.Contains(strings.Fields(l.methods), method)
}

// Aliases returns the operations of the legacy paths that are served exactly as op.
func Aliases(op huma.Operation) (old []huma.Operation) {
	for _, l := range legacyRoutes {
		if l.successor == op.Path && l.has(op.Method) && l.difference == "" {
			alias := op
			alias.Path, alias.OperationID, alias.Tags = l.path, "legacy-"+op.OperationID, []string{"Legacy"}
			old = append(old, l.deprecated(alias))
		}
	}
	return old
}

// LegacyOperation returns an operation of a legacy path that differs from its successor. It panics if legacyRoutes
// lacks it.
func LegacyOperation(method, path, id, summary string) huma.Operation {
	for _, l := range legacyRoutes {
		if l.path == path && l.has(method) && l.difference != "" {
			return l.deprecated(Operation(method, path, id, "Legacy", summary))
		}
	}
	panic("legacyRoutes does not say how " + method + " " + path + " differs from its successor")
}

// deprecated marks an operation as deprecated, in the OpenAPI document and in each response.
func (l legacyRoute) deprecated(op huma.Operation) huma.Operation {
	op.Deprecated = true
	op.Description = strings.TrimSpace("Deprecated: use " + l.successor + ". " + l.difference)
	op.Middlewares = slices.Concat(op.Middlewares, huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		r, w := Unwrap(ctx)
		l.deprecate(w, r)
		next(ctx)
	}})
	return op
}

// deprecatedSince is the date of the legacy paths' deprecation, in the format of RFC 9745: 2026-01-01.
const deprecatedSince = "@1767225600"

// deprecate sets the headers of a deprecated route, with a link to its successor. From its first parameter on, a legacy
// path equals the new one.
func (l legacyRoute) deprecate(w http.ResponseWriter, r *http.Request) {
	old, _, _ := strings.Cut(l.path, "{")
	successor, _, parameterized := strings.Cut(l.successor, "{")
	if parameterized {
		successor += strings.TrimPrefix(r.URL.EscapedPath(), old)
	}
	w.Header().Set("Deprecation", deprecatedSince)
	w.Header().Add("Link", "<"+PublicPath(r.Context(), successor)+`>; rel="successor-version"`)
}

// DeprecatedRoute wraps the handler of a legacy route that huma does not serve.
func DeprecatedRoute(path string, handle http.HandlerFunc) (string, http.HandlerFunc) {
	l := legacyRoutes[slices.IndexFunc(legacyRoutes, func(l legacyRoute) bool { return l.path == path })]
	return path, func(w http.ResponseWriter, r *http.Request) {
		l.deprecate(w, r)
		handle(w, r)
	}
}

// CheckLegacyRoutes panics if a legacy path is not served, or its parameters differ from its successor's.
func CheckLegacyRoutes(doc *huma.OpenAPI) {
	for _, l := range legacyRoutes {
		_, tail, _ := strings.Cut(l.path, "{")
		if _, same, _ := strings.Cut(l.successor, "{"); tail != same {
			panic(l.path + " does not have the parameters of " + l.successor)
		}
		for _, method := range strings.Fields(l.methods) {
			item := doc.Paths[l.path]
			if item == nil ||
				!slices.ContainsFunc(
					operationsOf(item), func(op *huma.Operation) bool { return op.Method == method && op.Deprecated },
				) {
				panic(method + " " + l.path + " is among the legacy routes, and is not served")
			}
		}
	}
}
