package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
	"github.com/go-chi/chi/v5"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/queries"
)

// Problem is an error response: RFC 9457 problem details.
//
//nolint:errname // the name of the field: RFC 9457
type Problem struct {
	Type     string            `json:"type" format:"uri" doc:"Identifies the kind of error; a GET on it explains the kind" example:"https://flags.example.com/problems/validation-failed"`
	Title    string            `json:"title" example:"Unprocessable Entity"`
	Status   int               `json:"status" example:"422"`
	Detail   string            `json:"detail" example:"validation failed"`
	Instance string            `json:"instance" doc:"urn:uuid: followed by the request's id" example:"urn:uuid:0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Errors   map[string]string `json:"errors,omitempty" doc:"What is wrong, by field" example:"{\"name\":\"is required and must not be empty\"}"`

	// For the token endpoint: OAuth's error code, and the detail again.
	OAuthError       string `json:"error,omitempty" hidden:"true"`
	OAuthDescription string `json:"error_description,omitempty" hidden:"true"`

	name     string // of the type; empty for the status's own
	headers  http.Header
	exceeded *quota.Budget // for 429, or nil
}

// kinds explains the kinds of errors, by status.
var kinds = map[int]struct{ name, title, text, example string }{
	400: {
		"bad-request",
		"Bad Request",
		"The request cannot be read: its JSON is malformed, or a required header is missing.",
		"the header X-Tenant-ID is required",
	},
	401: {
		"unauthorized",
		"Unauthorized",
		"The request has no credentials, or invalid ones. Send Authorization: Bearer with a token that is neither expired " +
			"nor signed out.",
		"the request needs Authorization: Bearer with a token",
	},
	403: {
		"forbidden",
		"Forbidden",
		"The caller may not do this: the role or the token's scopes do not allow it, the caller is not a member of the " +
			"tenant, the e-mail address is not verified, or the account is deactivated.",
		"the role viewer does not allow it",
	},
	404: {"not-found", "Not Found", "There is no such resource in this tenant, or no such route.", "no such resource"},
	405: {
		"method-not-allowed",
		"Method Not Allowed",
		"The route does not support this method. The header Allow lists the methods that it supports.",
		"the route does not support PUT",
	},
	409: {
		"conflict",
		"Conflict",
		"The resource already exists, or its state forbids the change.",
		"a flag with the key \"new-checkout\" exists already",
	},
	412: {
		"precondition-failed",
		"Precondition Failed",
		"The resource's version differs from If-Match. The header ETag has its version; nothing was changed.",
		"the flag has changed: its version is 7",
	},
	415: {
		"unsupported-media-type",
		"Unsupported Media Type",
		"The body has an unsupported type, or is compressed.",
		"the body must be of the type application/json",
	},
	422: {
		"validation-failed",
		"Unprocessable Entity",
		"The body is well-formed but invalid. errors names the wrong fields, " + events.CountText(
			maxNamedFields,
		) + " at most.",
		"validation failed",
	},
	429: {
		"rate-limit-exceeded",
		"Too Many Requests",
		"Too many requests were sent, too many expensive ones of the tenant are in progress, too many responses are " +
			"unread, or a daily quota is used up. Retry-After tells in how many seconds to retry.",
		"the rate limit is exceeded; try again later, in 17 s",
	},
	500: {
		"internal",
		"Internal Server Error",
		"The service failed. Search its log for the request's id.",
		"the request failed; search the log for its id",
	},
	503: {
		"unavailable",
		"Service Unavailable",
		"A part that the request needs is down, starting or overloaded. Retry-After tells in how many seconds to retry.",
		"the read models cannot be read at the moment",
	},
}

// NewProblem returns a problem. Its type and instance are set when it is written. For 429, detail names the exceeded
// limit, and is empty for the limit of requests.
func NewProblem(status int, detail string) *Problem {
	if _, ok := kinds[status]; !ok {
		status = http.StatusInternalServerError
	}
	p := &Problem{Title: kinds[status].title, Status: status, Detail: detail, headers: http.Header{}}
	switch status {
	case http.StatusUnauthorized:
		p.headers.Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		if detail != "" {
			detail = ": " + detail
		}
		p.Detail = "the rate limit is exceeded" + detail + "; try again later"
	case http.StatusServiceUnavailable:
		p.headers.Set("Retry-After", "1")
	}
	return p
}

// Invalid returns a 422 with its wrong fields.
func Invalid(fields map[string]string) *Problem {
	p := NewProblem(http.StatusUnprocessableEntity, "validation failed")
	p.Errors = fields
	return p
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.headers }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string {
	if p.OAuthError != "" {
		return "application/json" // OAuth clients require it
	}
	return "application/problem+json"
}

// complete fills in type, instance and Retry-After from the request.
func (p *Problem) complete(ctx context.Context) *Problem {
	p.bound()
	req := RequestOf(ctx)
	if p.exceeded != nil {
		p.exceeded.Show(req.answer)
	}
	if p.Status == http.StatusTooManyRequests && p.headers.Get("Retry-After") == "" {
		p.headers["Retry-After"] = req.answer["RateLimit-Reset"]
	}
	p.Type, p.Instance = req.publicURL+"/problems/"+cmp.Or(p.name, kinds[p.Status].name), "urn:uuid:"+req.ID
	return p
}

// ProblemOf converts errors of commands and queries to problems. Unexpected errors become a 500; they are logged and
// not shown.
func ProblemOf(ctx context.Context, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.complete(ctx)
	}
	if refusal, ok := errors.AsType[*commands.Error](err); ok {
		if refusal.Kind == commands.TooMany && refusal.AtOnce > 0 {
			return NoSlot(refusal.AtOnce, refusal.Detail).complete(ctx)
		}
		if refusal.Kind == commands.TooMany && refusal.PerDay > 0 {
			return TooManyRequests(quota.Spent(refusal.PerDay, refusal.UntilReset), refusal.Detail).complete(ctx)
		}
		if p := refusalProblem(refusal); p != nil {
			if refusal.Kind == commands.Unavailable {
				RequestOf(ctx).Log().Warn("unavailable", "err", err)
			}
			return p.complete(ctx)
		}
	}
	switch {
	case errors.Is(err, queries.ErrNotFound):
		return NewProblem(http.StatusNotFound, "no such resource").complete(ctx)
	case errors.Is(err, queries.ErrUnavailable):
		RequestOf(ctx).Log().Warn("unavailable", "err", err)
		return NewProblem(http.StatusServiceUnavailable, "the read models cannot be read at the moment").complete(ctx)
	case errors.Is(err, queries.ErrFuture):
		return Invalid(map[string]string{"at": queries.ErrFuture.Error()}).complete(ctx)
	case errors.Is(err, queries.ErrTooSlow):
		RequestOf(ctx).Log().Warn("unavailable", "err", err)
		return NewProblem(http.StatusServiceUnavailable,
			"the flags take too long to evaluate; name fewer of them, or simplify their rules").complete(ctx)
	case errors.Is(err, evaluation.ErrTooLarge):
		return Invalid(
			map[string]string{"attributes": "are too large to be compared with the rules of the flag in time"},
		).complete(ctx)
	}
	if missing, ok := errors.AsType[*evaluation.NoUnitError](err); ok {
		return Invalid(
			map[string]string{unitField(missing.Attribute): missing.Because()},
		).complete(ctx)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		RequestOf(ctx).Log().Debug("the client has disconnected", "err", err)
		return NewProblem(http.StatusServiceUnavailable, "the client has disconnected").complete(ctx)
	}
	RequestOf(ctx).Log().Error("request failed", "err", err)
	return NewProblem(http.StatusInternalServerError, kinds[http.StatusInternalServerError].example).complete(ctx)
}

// unitField returns the field of an evaluation's body that holds the unit of a split.
func unitField(attribute string) string {
	switch attribute {
	case "targetingKey":
		return attribute
	case "":
		return "attributes"
	default:
		return "attributes." + attribute
	}
}

// refusalProblem converts the refusal of a command to a problem. It returns nil for a fault of the service.
func refusalProblem(e *commands.Error) *Problem {
	switch e.Kind {
	case commands.Internal:
		return nil
	case commands.Invalid:
		p := Invalid(e.Fields)
		p.Detail = e.Detail
		return p
	case commands.Unauthenticated:
		return NewProblem(http.StatusUnauthorized, e.Detail)
	case commands.Forbidden:
		return NewProblem(http.StatusForbidden, e.Detail)
	case commands.NotFound:
		return NewProblem(http.StatusNotFound, e.Detail)
	case commands.Conflict:
		p := NewProblem(http.StatusConflict, e.Detail)
		p.name = string(e.Problem)
		return p
	case commands.PreconditionFailed:
		p := NewProblem(http.StatusPreconditionFailed, e.Detail)
		p.headers.Set("ETag", ETag(e.Version))
		return p
	case commands.TooMany:
		return NewProblem(http.StatusTooManyRequests, e.Detail)
	case commands.Unavailable:
		return NewProblem(http.StatusServiceUnavailable, e.Detail)
	}
	return nil
}

// WriteProblem answers with a problem outside of huma's operations.
func WriteProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	if tail, ok := strings.CutPrefix(r.URL.Path, OFREPManyRoute); ok && (tail == "" || tail[0] == '/') {
		WriteOFREP(w, r, strings.ToValidUTF8(strings.TrimPrefix(tail, "/"), "\uFFFD"), p)
		return
	}
	p.begin(w, r)
	_ = strictjson.Write(w, p)
}

// begin writes the status and headers of a problem.
func (p *Problem) begin(w http.ResponseWriter, r *http.Request) {
	p = p.complete(r.Context())
	if path := routedPath(r); path == GrantRoute || path == LegacyGrantRoute {
		p.asOAuth()
	}
	for name, values := range p.headers {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
}

// Errors of reading a body, in huma's words.
const (
	UnreadBody  = "cannot read request body" // the client disconnected
	MissingBody = "request body is required"
)

func bodyTooLarge(limit int) string { return "the body is larger than " + events.SizeText(limit) }

// humaProblem converts huma's errors to problems. It replaces huma.NewErrorWithContext.
func humaProblem(ctx huma.Context, status int, detail string, errs ...error) huma.StatusError {
	switch status {
	case http.StatusRequestEntityTooLarge:
		status, detail = http.StatusBadRequest, bodyTooLarge(maxBody) // operations with a larger limit refuse earlier
	case http.StatusRequestTimeout:
		status = http.StatusBadRequest
	case http.StatusInternalServerError:
		if detail == UnreadBody {
			return NewProblem(http.StatusBadRequest, detail).complete(ctx.Context())
		}
		return ProblemOf(ctx.Context(), errors.Join(append(errs, errors.New(detail))...))
	}
	if status != http.StatusUnprocessableEntity {
		p := NewProblem(status, detail)
		if len(errs) > 0 && status == http.StatusBadRequest {
			p.Detail = message(errs[0])
		}
		return p.complete(ctx.Context())
	}
	wrong := fieldsOf(errs)
	for name, text := range RequestOf(ctx.Context()).wrong {
		if wrong[name] != UnknownParameter {
			wrong[name] = text
		}
	}
	return Invalid(wrong).complete(ctx.Context())
}

// fieldsOf returns huma's errors by field.
func fieldsOf(errs []error) map[string]string {
	fields := map[string]string{}
	for _, err := range errs {
		name, text := "body", err.Error()
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			name, text = detail.Location, detail.Message
			if before, after, found := strings.Cut(text, ": "); found && name == "body" {
				name, text = before, after // strictjson names the field itself
			}
		}
		// Go's layout means nothing to callers
		if strings.HasPrefix(text, "invalid date/time for format ") || text == validation.MsgExpectedRFC3339DateTime {
			text = queries.ErrNotTime.Error()
		}
		for _, place := range []string{"body.", "query.", "path.", "header."} {
			name = strings.TrimPrefix(name, place)
		}
		if _, noted := fields[name]; !noted {
			fields[name] = text
		}
	}
	return fields
}

func message(err error) string {
	if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
		return detail.Message
	}
	return err.Error()
}

// memberLeftText explains the 409 with the name commands.MemberLeft.
const memberLeftText = "The person with this address left the tenant or declined to join. They must accept an " +
	"invitation to join again: send invitation: true."

// explain answers a GET on a problem's type.
func explain(w http.ResponseWriter, r *http.Request) {
	for status, kind := range kinds {
		name := chi.URLParam(r, "kind")
		if status == http.StatusConflict && name == string(commands.MemberLeft) {
			kind.name, kind.text = name, memberLeftText
		}
		if kind.name == name {
			w.Header().Set("Content-Type", "application/json")
			_ = strictjson.Write(w, struct {
				Type        string `json:"type"`
				Title       string `json:"title"`
				Status      int    `json:"status"`
				Description string `json:"description"`
			}{RequestOf(r.Context()).publicURL + "/problems/" + kind.name, kind.title, status, kind.text})
			return
		}
	}
	NotFound(w, r)
}

// NotFound answers a request without a route.
func NotFound(w http.ResponseWriter, r *http.Request) {
	WriteProblem(w, r, NewProblem(http.StatusNotFound, "there is no route "+r.URL.Path))
}

// methodNotAllowed answers with the methods that the path supports.
func (a *Core) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	p := NewProblem(http.StatusMethodNotAllowed, "the route does not support "+r.Method)
	path := r.URL.EscapedPath()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if a.Router.Match(chi.NewRouteContext(), method, path) {
			p.headers.Add("Allow", method)
			if method == "GET" {
				p.headers.Add("Allow", "HEAD")
			}
		}
	}
	if len(p.headers["Allow"]) == 0 { // a method that no route has
		NotFound(w, r)
		return
	}
	p.headers.Set("Allow", strings.Join(p.headers["Allow"], ", "))
	WriteProblem(w, r, p)
}

// UnknownParameter is the error of an unknown query parameter, in huma's words.
const UnknownParameter = "unknown query parameter"
