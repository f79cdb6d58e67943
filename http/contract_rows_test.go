package http_test

// contractRow is a row of the interface specification about one operation.
type contractRow struct {
	name string // method and path
	// headers are the headers of the row, except Authorization. X-Tenant-ID is required if it is listed.
	headers string
	// body has each member of the row; for a GET it is the query. Names in double angle brackets, also in the path, are
	// replaced by things created for the call.
	body   string
	status int
	answer any // a shape, nil for none
}

// contractRows has every row of the interface. A row without an answer follows the rule for its kind of call: the
// resource in its current state, or success.
var contractRows = []contractRow{
	// Token and user authentication
	{
		"POST /api/v1/oauth/token",
		"",
		"grant_type=client_credentials&client_id=<<clientId>>&client_secret=<<clientSecret>>&scope=flags:read%20flags:evaluate",
		200,
		tokenShape,
	},
	{"POST /api/v1/auth/signup", "", `{"email":"<<newEmail>>","password":"correct horse"}`, 201, bootstrap},
	{"POST /api/v1/auth/signup", "", `{"idToken":"<<tokenFromOutside>>"}`, 201, bootstrap},
	{"POST /api/v1/auth/login", "", `{"idToken":"<<idToken>>"}`, 200, bootstrap},
	{"POST /api/v1/auth/signin/google", "", `{"idToken":"<<googleToken>>","providerName":"google"}`, 200, bootstrap},
	{"POST /api/v1/auth/signin/github", "", `{"idToken":"<<githubToken>>","providerName":"github"}`, 200, bootstrap},
	{
		"POST /api/v1/auth/signin/microsoft",
		"",
		`{"idToken":"<<microsoftToken>>","providerName":"microsoft"}`,
		200,
		bootstrap,
	},
	{"POST /api/v1/auth/forgot-password", "", `{"email":"<<newEmail>>"}`, 200, success},
	{
		"POST /api/v1/auth/update-password",
		"",
		`{"currentPassword":"correct horse","newPassword":"correct horse battery"}`,
		200,
		success,
	},
	{"POST /api/v1/auth/logout", "", "", 200, success},

	// Flags
	{"GET /api/v1/flags", "X-Tenant-ID X-Environment", "", 200, list1{flagShape}},
	{
		"POST /api/v1/flags",
		"X-Tenant-ID X-Environment",
		`{"key":"new","name":"N","type":"string","defaultValue":"v","description":"D","tags":["a"]}`,
		201,
		flagShape,
	},
	{"GET /api/v1/flags/{flagKey}", "X-Tenant-ID X-Environment", "", 200, flagShape},
	{
		"PATCH /api/v1/flags/{flagKey}",
		"",
		`{"name":"N","description":"D","defaultValue":true,"tags":["a"]}`,
		200,
		flagShape,
	},
	{"DELETE /api/v1/flags/{flagKey}", "", "", 204, nil},
	{"POST /api/v1/flags/{flagKey}/enable", "", "", 200, success},
	{"POST /api/v1/flags/{flagKey}/disable", "", "", 200, success},
	{
		"POST /api/v1/flags/{flagKey}/evaluate",
		"X-Tenant-ID X-Environment",
		`{"targetingKey":"u","attributes":{"plan":"pro"},"environment":"production"}`,
		200,
		evaluationShape,
	},
	{"GET /api/v1/flags/{flagKey}/history", "", "", 200, list1{historyShape}},

	// Flag variations
	{"GET /api/v1/flags/{flagKey}/variations", "", "", 200, list1{variation}},
	{"POST /api/v1/flags/{flagKey}/variations", "", `{"name":"new","value":true,"description":"D"}`, 201, variation},
	{
		"PATCH /api/v1/flags/{flagKey}/variations/{variationId}",
		"",
		`{"name":"new","value":false,"description":"D"}`,
		200,
		variation,
	},
	{"DELETE /api/v1/flags/{flagKey}/variations/{variationId}", "", "", 204, nil},

	// Projects
	{"GET /api/v1/projects", "X-Tenant-ID", "", 200, list1{projectShape}},
	{"POST /api/v1/projects", "", `{"name":"N","description":"D","color":"#0ea5e9"}`, 201, projectShape},
	{"GET /api/v1/projects/{projectId}", "", "", 200, projectShape},
	{"PATCH /api/v1/projects/{projectId}", "", `{"name":"N","description":"D","color":"#0ea5e9"}`, 200, projectShape},
	{"DELETE /api/v1/projects/{projectId}", "", "", 204, nil},

	// Project-scoped flags
	{"GET /api/v1/flags/projects/{projectId}/flags", "", "", 200, list1{flagShape}},
	{
		"POST /api/v1/flags/projects/{projectId}/flags",
		"",
		`{"key":"new","name":"N","type":"number","defaultValue":1,"description":"D","flag_variations":[{"name":"a","value":2,"description":"D"}]}`,
		201,
		merged(flagShape, shape{"tags": "empty list"}),
	},
	{"GET /api/v1/flags/projects/{projectId}/flags/{flagKey}", "", "", 200, flagShape},
	{
		"PATCH /api/v1/flags/projects/{projectId}/flags/{flagKey}",
		"",
		`{"status":"inactive","name":"N","description":"D"}`,
		200,
		flagShape,
	},
	{"DELETE /api/v1/flags/projects/{projectId}/flags/{flagKey}", "", "", 204, nil},
	{"POST /api/v1/flags/projects/{projectId}/flags/{flagKey}/enable", "", "", 200, success},
	{"POST /api/v1/flags/projects/{projectId}/flags/{flagKey}/disable", "", "", 200, success},

	// Tenants, environments, users
	{"GET /api/v1/tenants", "", "", 200, list1{ownTenant}},
	{
		"POST /api/v1/tenants",
		"",
		`{"name":"N","primaryEmail":"ops@example.com","contactName":"C","isSandbox":true}`,
		201,
		tenantShape,
	},
	{"GET /api/v1/tenants/{tenantId}", "X-Tenant-ID", "", 200, tenantShape},
	{
		"PATCH /api/v1/tenants/{tenantId}",
		"",
		`{"name":"N","primaryEmail":"ops@example.com","contactName":"C"}`,
		200,
		tenantShape,
	},
	{"DELETE /api/v1/tenants/{tenantId}", "", "", 204, nil},
	{"GET /api/v1/tenants/{tenantId}/usage", "", "", 200, usageShape},
	{"GET /api/v1/tenants/{tenantId}/environments", "", "", 200, list1{"string"}},
	{"POST /api/v1/tenants/{tenantId}/environments", "", `{"environment":"new"}`, 201, shape{"environment": "string"}},
	{"DELETE /api/v1/tenants/{tenantId}/environments/{environment}", "", "", 204, nil},
	{"GET /api/v1/tenants/{tenantId}/users", "", "", 200, list1{memberShape}},
	{"POST /api/v1/tenants/{tenantId}/users", "", `{"email":"<<newEmail>>","role":"developer"}`, 201, memberShape},
	{"DELETE /api/v1/tenants/{tenantId}/users/{userId}", "", "", 204, nil},

	// Billing
	{
		"POST /api/v1/billing/checkout",
		"X-Tenant-ID",
		`{"type":"subscription","planId":"standard","successUrl":"https://app.example.com/done","cancelUrl":"https://app.example.com/no","customerId":"<<customerId>>","discounts":[{"coupon":"LAUNCH25"}],"referralId":"p","affiliate_referral":"p"}`,
		200,
		shape{"checkoutUrl": "string", "type": "string"},
	},
	{
		"POST /api/v1/billing/checkout",
		"X-Tenant-ID",
		`{"type":"payment","productId":"prod_1","amount":4900,"successUrl":"https://app.example.com/done","cancelUrl":"https://app.example.com/no","promoCode":"SPRING"}`,
		200,
		shape{"checkoutUrl": "string", "type": "string"},
	},
	{
		"POST /api/v1/billing/portal",
		"",
		`{"returnUrl":"https://app.example.com/billing"}`,
		200,
		shape{"portalUrl": "string"},
	},
	{
		"GET /api/v1/billing/subscription",
		"",
		"",
		200,
		shape{
			"id":                 "string or null",
			"plan":               "string",
			"status":             "string",
			"currentPeriodStart": "time or null",
			"currentPeriodEnd":   "time or null",
			"cancelAtPeriodEnd":  "boolean",
			"payments":           "boolean",
		},
	},
	{
		"GET /api/v1/billing/subscription",
		"",
		"",
		200,
		shape{
			"id":                 "string",
			"plan":               "string",
			"status":             "string",
			"currentPeriodStart": "time",
			"currentPeriodEnd":   "time",
			"cancelAtPeriodEnd":  "boolean",
			"payments":           "boolean",
		},
	},
	{"GET /api/v1/billing/features/analytics", "", "", 200, shape{"hasAccess": "boolean"}},
	{"GET /api/v1/billing/features/experiments/check", "", "", 200, shape{"hasAccess": "boolean"}},
	{"GET /api/v1/billing/features/multivariate/check", "", "", 200, shape{"hasAccess": "boolean"}},

	// OAuth clients
	{
		"POST /api/v1/oauth/clients",
		"X-Tenant-ID",
		`{"name":"N","scopes":["flags:read","flags:write","flags:evaluate","flags:sync","projects:read","projects:write"]}`,
		201,
		newClient,
	},

	// Product tours
	{"GET /api/v1/users/{userId}/product-tours/{tourKey}", "", "", 200, tourShape},
	{
		"PUT /api/v1/users/{userId}/product-tours/{tourKey}",
		"Idempotency-Key",
		`{"completed":true,"completed_at":"2026-03-14T15:09:26.535Z"}`,
		200,
		merged(tourShape, shape{"completed_at": "time", "created_at": "time", "updated_at": "time"}),
	},
	{"DELETE /api/v1/users/{userId}/product-tours/{tourKey}", "", "", 204, nil},

	// Sandbox
	{"GET /api/v1/sandbox/status", "X-Tenant-ID", "", 200, shape{"active": "boolean", "expiresAt": "time"}},
	{"GET /api/v1/sandbox/indicators", "", "", 200, shape{"flagsUsed": "integer", "evaluations": "integer"}},
	{"GET /api/v1/sandbox/demo-data", "", "", 200, shape{"flags": list1{"string"}, "users": list1{"string"}}},
	{"POST /api/v1/sandbox/cleanup/tenant", "", "", 200, success},
	{"POST /api/v1/sandbox/subscribe", "", `{"email":"<<newEmail>>","name":"N"}`, 202, success},

	// Notifications
	{
		"GET /api/v1/notifications",
		"",
		"limit=20&offset=0&unreadOnly=false",
		200,
		shape{"notifications": list1{notificationShape}, "totalCount": "integer", "unreadCount": "integer"},
	},
	{"GET /api/v1/notifications/{id}", "", "", 200, notificationShape},
	{"PATCH /api/v1/notifications/{id}/read", "", "", 200, merged(notificationShape, shape{"readAt": "time"})},
	{"PATCH /api/v1/notifications/read-all", "", "", 200, merged(success, shape{"markedCount": "integer"})},
	{"DELETE /api/v1/notifications/clear", "", "", 200, merged(success, shape{"clearedCount": "integer"})},
	{"GET /api/v1/notifications/device-tokens", "", "", 200, list1{deviceShape}},
	{
		"POST /api/v1/notifications/device-tokens",
		"",
		`{"deviceToken":"<<newDeviceToken>>","deviceName":"N","deviceType":"ios"}`,
		201,
		deviceShape,
	},
	{"DELETE /api/v1/notifications/device-tokens/{token}", "", "", 204, nil},
	{
		"POST /api/v1/notifications/send",
		"",
		`{"userId":"<<userId>>","tenantId":"<<tenantId>>","title":"T","body":"B","type":"t","icon":"i","actionType":"a","referenceId":"r","data":{"k":"v"}}`,
		201,
		notificationShape,
	},

	// Admin
	{"GET /api/v1/admin/users", "", "", 200, list1{userShape}},
	{"GET /api/v1/admin/users/system", "", "", 200, list1{userShape}},
	{"PATCH /api/v1/admin/users/{userId}/deactivate", "", "", 200, userShape},
	{"PATCH /api/v1/admin/users/{userId}/reactivate", "", "", 200, userShape},
	{"PATCH /api/v1/admin/users/{userId}/role", "", `{"role":"viewer"}`, 200, userShape},
	{"POST /api/v1/admin/invitations", "", `{"email":"<<newEmail>>","role":"viewer"}`, 201, invitationShape},
	{"GET /api/v1/admin/invitations", "", "", 200, list1{invitationShape}},
	{"GET /api/v1/admin/invitations/{invitationId}", "", "", 200, invitationShape},
	{"DELETE /api/v1/admin/invitations/{invitationId}", "", "", 204, nil},
	{"POST /api/v1/admin/invitations/{invitationId}/resend", "", "", 200, success},
	{"POST /api/v1/admin/invitations/accept", "", "", 200, merged(success, invitationShape)},
	{"GET /api/v1/admin/tenants", "", "", 200, list1{platformTenant}},
	{"POST /admin/invite", "", `{"email":"<<newEmail>>","role":"admin"}`, 200, success},

	// Health and system
	{"GET /health", "", "", 200, shape{"status": "string", "timestamp": "time"}},
	{
		"GET /api/v1/version",
		"",
		"",
		200,
		shape{
			"version":      "string",
			"build_number": "string",
			"status":       "string",
			"timestamp":    "time",
			"environment":  "string",
		},
	},
	{"GET /", "", "", 200, shape{"name": "string", "version": "string"}},

	// Legacy aliases that differ from their successors
	{
		"POST /oauth/token",
		"",
		"grant_type=client_credentials&client_id=<<clientId>>&client_secret=<<clientSecret>>&scope=flags:read",
		200,
		tokenShape,
	},
	{"POST /auth/signin", "", `{"email":"<<email>>","password":"correct horse"}`, 200, sessionShape},
	{
		"POST /auth/signup",
		"",
		`{"email":"<<newEmail>>","password":"correct horse","displayName":"Ada"}`,
		201,
		sessionShape,
	},
	{"POST /auth/google", "", `{"idToken":"<<googleToken>>"}`, 200, bootstrap},
	{"POST /auth/microsoft", "", `{"idToken":"<<microsoftToken>>"}`, 200, bootstrap},
	{
		"POST /api/flags/{flagKey}/evaluate",
		"X-Tenant-ID X-Environment",
		`{"userId":"u","attributes":{"plan":"pro"},"environment":"production"}`,
		200,
		evaluationShape,
	},
	{
		"POST /api/billing/checkout",
		"",
		`{"type":"subscription","planId":"standard","successUrl":"https://app.example.com/done","cancelUrl":"https://app.example.com/no"}`,
		200,
		shape{"url": "string"},
	},
	{"GET /admin/users", "", "", 200, list1{userShape}},
	{"PATCH /admin/users/{userId}/role", "", `{"role":"vendor_support"}`, 200, userShape},
	{"POST /admin/invitations", "", `{"email":"<<newEmail>>","role":"vendor_support"}`, 201, invitationShape},
}

// sameShape lists the legacy paths whose operations equal those under /api/v1 with the same tail.
var sameShape = []string{
	"GET /api/flags",
	"POST /api/flags",
	"GET /api/flags/{flagKey}",
	"PATCH /api/flags/{flagKey}",
	"DELETE /api/flags/{flagKey}",
	"GET /api/flags/{flagKey}/variations",
	"POST /api/flags/{flagKey}/variations",
	"GET /api/projects",
	"POST /api/projects",
	"GET /api/flags/projects/{projectId}/flags",
	"POST /api/flags/projects/{projectId}/flags",
	"GET /api/tenants",
	"POST /api/tenants",
	"GET /api/tenants/{tenantId}/users",
	"POST /api/tenants/{tenantId}/users",
	"POST /api/oauth/clients",
	"POST /api/billing/portal",
	"GET /api/billing/subscription",
	"GET /api/notifications",
	"PATCH /api/notifications/read-all",
	"DELETE /api/notifications/clear",
	"POST /api/notifications/send",
	"GET /api/notifications/device-tokens",
	"POST /api/notifications/device-tokens",
	"GET /v1/users/{userId}/product-tours/{tourKey}",
	"GET /api/sandbox/status",
	"GET /api/sandbox/indicators",
	"GET /api/sandbox/demo-data",
}

const evaluationKeys = "browsers, and servers that should not fetch a token every hour, need a credential"

// additions are operations beyond the interface, each with the reason for it.
var additions = map[string]string{
	"GET /api/v1/tenants/{tenantId}/environments/settings":         "one order and one color for each, everywhere",
	"PUT /api/v1/tenants/{tenantId}/environments/settings":         "one order and one color for each, everywhere",
	"GET /api/v1/tenants/{tenantId}/flag-rules":                    "large tenants agree on names, owners and reasons",
	"PUT /api/v1/tenants/{tenantId}/flag-rules":                    "large tenants agree on names, owners and reasons",
	"POST /api/v1/tenants/{tenantId}/membership/accept":            "people say whether they stay in a tenant that another one added them to",
	"POST /api/v1/tenants/{tenantId}/membership/decline":           "as accept",
	"POST /api/v1/auth/refresh":                                    "an ID token ends after an hour, and its owner needs another",
	"POST /api/v1/auth/reset-password":                             "the mail of forgot-password leads to it",
	"POST /api/v1/auth/verify-email":                               "the mail that verifies an address leads to it",
	"POST /api/v1/auth/resend-verification":                        "the mail that verifies an address may be lost",
	"GET /.well-known/jwks.json":                                   "others can verify tokens of machines",
	"GET /api/v1/evaluation-keys":                                  evaluationKeys,
	"POST /api/v1/evaluation-keys":                                 evaluationKeys,
	"PATCH /api/v1/evaluation-keys/{keyId}":                        evaluationKeys,
	"POST /api/v1/evaluation-keys/{keyId}/rotate":                  evaluationKeys,
	"DELETE /api/v1/evaluation-keys/{keyId}":                       evaluationKeys,
	"GET /api/v1/oauth/clients":                                    "who made clients needs to see them",
	"DELETE /api/v1/oauth/clients/{clientId}":                      "a client that is known to others must be stopped",
	"POST /api/v1/oauth/clients/{clientId}/rotate":                 "a secret is replaced without an outage",
	"PATCH /api/v1/tenants/{tenantId}/users/{userId}":              "a role is changed without removing the member",
	"POST /api/v1/flags/evaluate":                                  "a page needs many flags at once",
	"GET /api/v1/flags/{flagKey}/rules":                            "flags are served by rules",
	"PUT /api/v1/flags/{flagKey}/rules":                            "flags are served by rules",
	"PUT /api/v1/flags/{flagKey}/fallthrough":                      "what is served where no rule matches",
	"POST /api/v1/flags/{flagKey}/rules/evaluate":                  "who changes rules sees what they would serve before they save",
	"GET /api/v1/cleanup":                                          "somebody removes flags that nobody uses",
	"GET /api/v1/config":                                           "flagd's providers evaluate in process from a file",
	"GET /api/v1/tags":                                             "people choose a tag from those that flags have",
	"GET /api/v1/audit":                                            "auditors ask who changed what in the whole tenant",
	"GET /api/v1/audit/export":                                     "other programs keep and search the trail",
	"GET /api/v1/audit/facts":                                      "a tenant verifies its facts without the service",
	"GET /api/v1/audit/key":                                        "others verify checkpoints with it",
	"GET /api/v1/audit/checkpoint":                                 "it later proves that nothing was altered",
	"GET /api/v1/audit/proof":                                      "it shows that a fact is in the trail of a checkpoint",
	"GET /api/v1/audit/consistency":                                "it shows that a trail begins with that of an older checkpoint",
	"GET /api/v1/admin/audit":                                      "operators ask who changed what in all tenants and on the platform",
	"GET /api/v1/admin/role":                                       "a page shows what concerns the platform to those alone who may see it",
	"GET /api/v1/admin/status":                                     "operators see what is behind or fails without the command line",
	"GET /api/v1/flags/{flagKey}/versions":                         "the past of a flag",
	"GET /api/v1/flags/{flagKey}/versions/{version}":               "the past of a flag",
	"GET /api/v1/flags/{flagKey}/diff":                             "the past of a flag",
	"GET /api/v1/flags/{flagKey}/metrics":                          "nobody dares to remove a flag without knowing who asks for it",
	"GET /api/v1/tenants/{tenantId}/metrics":                       "who asks for flags, and for which of them",
	"POST /api/v1/flags/{flagKey}/revert":                          "the past of a flag comes back",
	"POST /api/v1/flags/revert":                                    "what was done to many flags is undone",
	"GET /api/v1/flags/stream":                                     "clients hear of changes as they are made",
	"GET /api/v1/feed":                                             "flags are evaluated beside and inside applications",
	"POST /api/v1/billing/webhook":                                 "Stripe tells by it what has been paid",
	"POST /ofrep/v1/evaluate/flags/{key}":                          "OpenFeature's protocol",
	"POST /ofrep/v1/evaluate/flags":                                "OpenFeature's protocol",
	"POST /api/flags/{flagKey}/enable":                             below,
	"POST /api/flags/{flagKey}/disable":                            below,
	"GET /api/flags/{flagKey}/history":                             below,
	"PATCH /api/flags/{flagKey}/variations/{variationId}":          below,
	"DELETE /api/flags/{flagKey}/variations/{variationId}":         below,
	"GET /api/projects/{projectId}":                                below,
	"PATCH /api/projects/{projectId}":                              below,
	"DELETE /api/projects/{projectId}":                             below,
	"GET /api/flags/projects/{projectId}/flags/{flagKey}":          below,
	"PATCH /api/flags/projects/{projectId}/flags/{flagKey}":        below,
	"DELETE /api/flags/projects/{projectId}/flags/{flagKey}":       below,
	"POST /api/flags/projects/{projectId}/flags/{flagKey}/enable":  below,
	"POST /api/flags/projects/{projectId}/flags/{flagKey}/disable": below,
	"GET /api/tenants/{tenantId}":                                  below,
	"PATCH /api/tenants/{tenantId}":                                below,
	"DELETE /api/tenants/{tenantId}":                               below,
	"PATCH /api/tenants/{tenantId}/users/{userId}":                 below,
	"DELETE /api/tenants/{tenantId}/users/{userId}":                below,
	"GET /api/oauth/clients":                                       below,
	"DELETE /api/oauth/clients/{clientId}":                         below,
	"POST /api/oauth/clients/{clientId}/rotate":                    below,
}

const below = "it stands below an old path that is listed, and whoever knows that one expects it"
