package rest

// The routes that the steps before an operation treat differently, and their legacy paths.
const (
	GrantRoute          = "/api/v1/oauth/token"
	LegacyGrantRoute    = "/oauth/token"
	JWKSRoute           = "/.well-known/jwks.json"
	VerificationRoute   = "/api/v1/auth/resend-verification"
	SubscribeRoute      = "/api/v1/sandbox/subscribe"
	CheckoutRoute       = "/api/v1/billing/checkout"
	LegacyCheckoutRoute = "/api/billing/checkout"
	WebhookRoute        = "/api/v1/billing/webhook"
	EvaluateRoute       = "/api/v1/flags/{flagKey}/evaluate"
	LegacyEvaluateRoute = "/api/flags/{flagKey}/evaluate"
	EvaluateManyRoute   = "/api/v1/flags/evaluate"
	CheckSegmentRoute   = "/api/v1/segments/{segmentKey}/check"
	EvaluateDraftRoute  = "/api/v1/flags/{flagKey}/rules/evaluate"
	OFREPRoute          = "/ofrep/v1/evaluate/flags/{key}"
	OFREPManyRoute      = "/ofrep/v1/evaluate/flags"
	StreamRoute         = "/api/v1/flags/stream"
	FeedRoute           = "/api/v1/feed"
	LogsRoute           = "/v1/logs"
	UsageRoute          = "/api/v1/usage"
)
