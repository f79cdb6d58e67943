package http_test

import (
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// leastRoles maps each operation to the least role that may call it. New operations need an entry.
var leastRoles = map[string]string{
	"GET /":                                                           "anyone",
	"GET /health":                                                     "anyone",
	"GET /api/v1/version":                                             "anyone",
	"POST /api/v1/auth/signup":                                        "anyone",
	"POST /api/v1/auth/login":                                         "anyone",
	"POST /api/v1/auth/refresh":                                       "anyone",
	"POST /auth/signup":                                               "anyone",
	"POST /auth/signin":                                               "anyone",
	"POST /api/v1/oauth/token":                                        "anyone",
	"POST /oauth/token":                                               "anyone",
	"GET /.well-known/jwks.json":                                      "anyone",
	"GET /api/v1/evaluation-keys":                                     "viewer",
	"POST /api/v1/evaluation-keys":                                    "admin",
	"GET /api/v1/evaluation-keys/{keyId}":                             "viewer",
	"PATCH /api/v1/evaluation-keys/{keyId}":                           "admin",
	"POST /api/v1/evaluation-keys/{keyId}/rotate":                     "admin",
	"DELETE /api/v1/evaluation-keys/{keyId}":                          "admin",
	"POST /api/v1/oauth/clients":                                      "admin",
	"GET /api/v1/oauth/clients":                                       "admin",
	"DELETE /api/v1/oauth/clients/{clientId}":                         "admin",
	"POST /api/v1/oauth/clients/{clientId}/rotate":                    "admin",
	"POST /api/v1/auth/signin/google":                                 "anyone",
	"POST /api/v1/auth/signin/github":                                 "anyone",
	"POST /api/v1/auth/signin/microsoft":                              "anyone",
	"POST /auth/google":                                               "anyone",
	"POST /auth/microsoft":                                            "anyone",
	"POST /api/v1/auth/forgot-password":                               "anyone",
	"POST /api/v1/auth/reset-password":                                "anyone",
	"POST /api/v1/auth/verify-email":                                  "anyone",
	"POST /api/v1/auth/update-password":                               "person",
	"POST /api/v1/auth/resend-verification":                           "person",
	"GET /api/v1/sandbox/status":                                      "viewer",
	"GET /api/v1/sandbox/indicators":                                  "viewer",
	"GET /api/v1/sandbox/demo-data":                                   "viewer",
	"POST /api/v1/sandbox/cleanup/tenant":                             "admin",
	"POST /api/v1/sandbox/subscribe":                                  "anyone",
	"GET /api/v1/users/{userId}/product-tours/{tourKey}":              "person",
	"PUT /api/v1/users/{userId}/product-tours/{tourKey}":              "person",
	"DELETE /api/v1/users/{userId}/product-tours/{tourKey}":           "person",
	"POST /api/v1/auth/logout":                                        "person",
	"GET /api/v1/tenants":                                             "person",
	"POST /api/v1/tenants":                                            "person",
	"POST /api/v1/billing/checkout":                                   "admin",
	"POST /api/v1/billing/portal":                                     "admin",
	"POST /api/v1/billing/webhook":                                    "anyone",
	"GET /api/v1/tenants/{tenantId}":                                  "viewer",
	"GET /api/v1/tenants/{tenantId}/usage":                            "viewer",
	"GET /api/v1/tenants/{tenantId}/environments":                     "viewer",
	"GET /api/v1/tenants/{tenantId}/environments/settings":            "viewer",
	"PUT /api/v1/tenants/{tenantId}/environments/settings":            "admin",
	"GET /api/v1/tenants/{tenantId}/flag-rules":                       "viewer",
	"PUT /api/v1/tenants/{tenantId}/flag-rules":                       "admin",
	"PATCH /api/v1/tenants/{tenantId}":                                "admin",
	"DELETE /api/v1/tenants/{tenantId}":                               "admin",
	"POST /api/v1/tenants/{tenantId}/environments":                    "admin",
	"DELETE /api/v1/tenants/{tenantId}/environments/{environment}":    "admin",
	"POST /api/v1/tenants/{tenantId}/membership/accept":               "person",
	"POST /api/v1/tenants/{tenantId}/membership/decline":              "person",
	"GET /api/v1/tenants/{tenantId}/users":                            "viewer",
	"POST /api/v1/tenants/{tenantId}/users":                           "admin",
	"PATCH /api/v1/tenants/{tenantId}/users/{userId}":                 "admin",
	"DELETE /api/v1/tenants/{tenantId}/users/{userId}":                "admin",
	"GET /api/v1/admin/users":                                         "platform admin",
	"GET /api/v1/admin/users/system":                                  "super user",
	"GET /api/v1/admin/tenants":                                       "platform viewer",
	"PATCH /api/v1/admin/users/{userId}/deactivate":                   "super user",
	"PATCH /api/v1/admin/users/{userId}/reactivate":                   "super user",
	"PATCH /api/v1/admin/users/{userId}/role":                         "super user",
	"POST /api/v1/admin/invitations":                                  "super user",
	"GET /api/v1/admin/invitations":                                   "super user",
	"GET /api/v1/admin/invitations/{invitationId}":                    "super user",
	"DELETE /api/v1/admin/invitations/{invitationId}":                 "super user",
	"POST /api/v1/admin/invitations/{invitationId}/resend":            "super user",
	"POST /api/v1/admin/invitations/accept":                           "person",
	"GET /admin/users":                                                "platform admin",
	"PATCH /admin/users/{userId}/role":                                "super user",
	"POST /admin/invitations":                                         "super user",
	"POST /admin/invite":                                              "person",
	"GET /api/v1/notifications":                                       "person",
	"GET /api/v1/notifications/{id}":                                  "person",
	"PATCH /api/v1/notifications/{id}/read":                           "person",
	"PATCH /api/v1/notifications/read-all":                            "person",
	"DELETE /api/v1/notifications/clear":                              "person",
	"POST /api/v1/notifications/send":                                 "person",
	"GET /api/v1/notifications/device-tokens":                         "person",
	"POST /api/v1/notifications/device-tokens":                        "person",
	"DELETE /api/v1/notifications/device-tokens/{token}":              "person",
	"GET /api/v1/cleanup":                                             "viewer",
	"GET /api/v1/config":                                              "viewer",
	"GET /api/v1/tags":                                                "viewer",
	"GET /api/v1/audit":                                               "viewer",
	"GET /api/v1/audit/export":                                        "viewer",
	"GET /api/v1/audit/facts":                                         "admin",
	"GET /api/v1/audit/key":                                           "viewer",
	"GET /api/v1/audit/checkpoint":                                    "viewer",
	"GET /api/v1/audit/proof":                                         "viewer",
	"GET /api/v1/audit/consistency":                                   "viewer",
	"GET /api/v1/admin/audit":                                         "platform admin",
	"GET /api/v1/admin/status":                                        "platform admin",
	"GET /api/v1/admin/role":                                          "person",
	"GET /api/v1/billing/subscription":                                "viewer",
	"GET /api/v1/billing/features/analytics":                          "viewer",
	"GET /api/v1/billing/features/experiments/check":                  "viewer",
	"GET /api/v1/billing/features/multivariate/check":                 "viewer",
	"GET /api/v1/segments":                                            "viewer",
	"POST /api/v1/segments":                                           "developer",
	"GET /api/v1/segments/{segmentKey}":                               "viewer",
	"PATCH /api/v1/segments/{segmentKey}":                             "developer",
	"DELETE /api/v1/segments/{segmentKey}":                            "developer",
	"GET /api/v1/segments/{segmentKey}/rules":                         "viewer",
	"PUT /api/v1/segments/{segmentKey}/rules":                         "developer",
	"GET /api/v1/segments/{segmentKey}/members":                       "viewer",
	"POST /api/v1/segments/{segmentKey}/members":                      "developer",
	"GET /api/v1/segments/{segmentKey}/flags":                         "viewer",
	"POST /api/v1/segments/{segmentKey}/check":                        "viewer",
	"GET /api/v1/segments/{segmentKey}/history":                       "viewer",
	"GET /api/v1/segments/{segmentKey}/versions":                      "viewer",
	"GET /api/v1/segments/{segmentKey}/versions/{version}":            "viewer",
	"GET /api/v1/segments/{segmentKey}/diff":                          "viewer",
	"POST /api/v1/segments/{segmentKey}/revert":                       "developer",
	"POST /api/v1/segments/{segmentKey}/forget":                       "admin",
	"GET /api/v1/projects":                                            "viewer",
	"GET /api/v1/projects/{projectId}":                                "viewer",
	"POST /api/v1/projects":                                           "developer",
	"PATCH /api/v1/projects/{projectId}":                              "developer",
	"DELETE /api/v1/projects/{projectId}":                             "developer",
	"GET /api/v1/flags":                                               "viewer",
	"GET /api/v1/flags/{flagKey}":                                     "viewer",
	"GET /api/v1/flags/{flagKey}/history":                             "viewer",
	"GET /api/v1/flags/{flagKey}/dependents":                          "viewer",
	"GET /api/v1/flags/{flagKey}/variations":                          "viewer",
	"GET /api/v1/flags/{flagKey}/versions":                            "viewer",
	"GET /api/v1/flags/{flagKey}/versions/{version}":                  "viewer",
	"GET /api/v1/flags/{flagKey}/diff":                                "viewer",
	"GET /api/v1/flags/{flagKey}/metrics":                             "viewer",
	"GET /api/v1/tenants/{tenantId}/metrics":                          "viewer",
	"POST /api/v1/flags/{flagKey}/revert":                             "developer",
	"POST /api/v1/flags/revert":                                       "developer",
	"POST /api/v1/flags/{flagKey}/evaluate":                           "viewer",
	"POST /api/v1/flags/evaluate":                                     "viewer",
	"POST /ofrep/v1/evaluate/flags":                                   "viewer",
	"POST /ofrep/v1/evaluate/flags/{key}":                             "viewer",
	"GET /api/v1/flags/{flagKey}/rules":                               "viewer",
	"POST /api/v1/flags/{flagKey}/rules/evaluate":                     "viewer",
	"PUT /api/v1/flags/{flagKey}/rules":                               "developer",
	"PUT /api/v1/flags/{flagKey}/fallthrough":                         "developer",
	"GET /api/v1/flags/{flagKey}/prerequisites":                       "viewer",
	"PUT /api/v1/flags/{flagKey}/prerequisites":                       "developer",
	"GET /api/v1/flags/stream":                                        "viewer",
	"GET /api/v1/feed":                                                "viewer", // of machines: people are refused
	"POST /api/v1/usage":                                              "viewer", // of machines, as is the next
	"POST /v1/logs":                                                   "viewer",
	"POST /api/v1/flags":                                              "developer",
	"PATCH /api/v1/flags/{flagKey}":                                   "developer",
	"DELETE /api/v1/flags/{flagKey}":                                  "developer",
	"POST /api/v1/flags/{flagKey}/enable":                             "developer",
	"POST /api/v1/flags/{flagKey}/disable":                            "developer",
	"POST /api/v1/flags/{flagKey}/variations":                         "developer",
	"PATCH /api/v1/flags/{flagKey}/variations/{variationId}":          "developer",
	"DELETE /api/v1/flags/{flagKey}/variations/{variationId}":         "developer",
	"GET /api/v1/flags/projects/{projectId}/flags":                    "viewer",
	"POST /api/v1/flags/projects/{projectId}/flags":                   "developer",
	"GET /api/v1/flags/projects/{projectId}/flags/{flagKey}":          "viewer",
	"PATCH /api/v1/flags/projects/{projectId}/flags/{flagKey}":        "developer",
	"DELETE /api/v1/flags/projects/{projectId}/flags/{flagKey}":       "developer",
	"POST /api/v1/flags/projects/{projectId}/flags/{flagKey}/enable":  "developer",
	"POST /api/v1/flags/projects/{projectId}/flags/{flagKey}/disable": "developer",
}

// leastRole returns the least role for an operation.
func leastRole(name string) string { return leastRoles[current(name)] }

// current returns the current operation of a legacy path. Both require the same role.
func current(name string) string {
	if strings.Contains(name, " /api/v1/") || name == "POST /v1/logs" { // OpenTelemetry's path
		return name
	}
	return strings.NewReplacer(" /v1/", " /api/v1/", " /api/", " /api/v1/").Replace(name)
}

// roleRank orders the roles: each may call what the lower ones may.
func roleRank(who string) int {
	return slices.Index(
		[]string{"anyone", "person", "viewer", "developer", "admin", "platform viewer", "platform admin", "super user"}, who,
	)
}

func TestAccess(t *testing.T) {
	nodetest.Cases{
		"it is known of every operation who may call it": func(t *testing.T, me *nodetest.Client) {
			_, operations := me.Document()
			for name, operation := range operations {
				if leastRole(name) == "" {
					t.Errorf("%s is not known", name)
				}
				if public := operation["security"] == nil; public != (leastRole(name) == "anyone") {
					t.Errorf("the document says of %s that it is public: %v", name, public)
				}
			}
			for name := range leastRoles {
				if operations[name] == nil {
					t.Errorf("%s is not in the document", name)
				}
			}
		},
		"a viewer reads and evaluates, and changes nothing": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			id := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
			_, project := me.CreateProject("p")
			viewer := me.Join("viewer")
			for _, call := range [][2]string{
				{"PATCH", nodetest.FlagPath("k")}, {"DELETE", nodetest.FlagPath("k")}, {"POST", nodetest.FlagPath("k", "/disable")}, {"POST", nodetest.FlagPath("k", "/variations")},
				{"PATCH", nodetest.FlagPath("k", "/variations/", id)}, {"DELETE", nodetest.FlagPath("k", "/variations/", id)}, {"PUT", nodetest.FlagPath("k", "/rules")}, {"PUT", nodetest.FlagPath("k", "/fallthrough")}, {"PUT", nodetest.FlagPath("k", "/prerequisites")}, {"PATCH", project}, {"DELETE", project},
			} {
				viewer.Call(call[0], call[1], nil).Refused(403)
			}
			viewer.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"enabled": true, "version": 3})
			viewer.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200)
			viewer.Call("GET", nodetest.FlagPath("k", "/variations"), nil).Want(200)
			viewer.Call("GET", project, nil).Want(200)
			viewer.Evaluate("k", `{}`).Want(200)
			nodetest.Same(t, "what a viewer and who is no member at all may do",
				viewer.NewTenant("own").CreateFlag("own", nil)["key"], "own")
		},
		"a developer may call all that concerns flags and projects": func(_ *testing.T, me *nodetest.Client) {
			developer := me.Join("developer")
			developer.CreateEnabledFlag("k", nil)
			developer.CreateProject("p")
			developer.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
		},
	}.Run(t)
}
