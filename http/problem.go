package http

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
	"flagledger/http/limit"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// problem is an error answer: RFC 9457 problem details.
type problem struct {
	Type     string            `json:"type" format:"uri" doc:"Identifies the kind of error; a GET on it explains the kind" example:"https://flags.example.com/problems/validation-failed"`
	Title    string            `json:"title" example:"Unprocessable Entity"`
	Status   int               `json:"status" example:"422"`
	Detail   string            `json:"detail" example:"validation failed"`
	Instance string            `json:"instance" doc:"urn:uuid: and the request's id" example:"urn:uuid:0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Errors   map[string]string `json:"errors,omitempty" doc:"What is wrong, by field" example:"{\"name\":\"is required and must not be empty\"}"`

	// Of the token endpoint: the kind of error in OAuth's words, and the detail once more.
	OAuthError       string `json:"error,omitempty" hidden:"true"`
	OAuthDescription string `json:"error_description,omitempty" hidden:"true"`

	name     string // of the type; empty for that of the status
	headers  http.Header
	exceeded *limit.Budget // of 429; nil for others
}

// kinds explains the kinds of errors, by status.
var kinds = map[int]struct{ name, title, text, example string }{
	400: {
		"bad-request",
		"Bad Request",
		"The request cannot be read: its JSON is malformed, or a header that it needs is missing.",
		"the header X-Tenant-ID is required",
	},
	401: {
		"unauthorized",
		"Unauthorized",
		"The request has no credentials, or ones that do not hold. Send Authorization: Bearer with a token that is neither " +
			"expired nor signed out.",
		"the request needs Authorization: Bearer with a token",
	},
	403: {
		"forbidden",
		"Forbidden",
		"The caller may not do this: the role in the tenant, or the scopes of the token, do not allow it, the tenant is " +
			"another's, the e-mail address is not verified, or the account has been deactivated.",
		"the role viewer does not allow it",
	},
	404: {"not-found", "Not Found", "There is no such resource in this tenant, or no such route.", "no such resource"},
	405: {
		"method-not-allowed",
		"Method Not Allowed",
		"The route does not take this method. Allow names those that it takes.",
		"the route does not take PUT",
	},
	409: {
		"conflict",
		"Conflict",
		"The resource exists already, or its state forbids the change.",
		"a flag with the key \"new-checkout\" exists already",
	},
	412: {
		"precondition-failed",
		"Precondition Failed",
		"The resource has another version than If-Match names. ETag names the one it has; nothing was changed.",
		"the flag has changed: its version is 7",
	},
	415: {
		"unsupported-media-type",
		"Unsupported Media Type",
		"The body is of a type that the route does not take, or is compressed.",
		"the body must be of the type application/json",
	},
	422: {
		"validation-failed",
		"Unprocessable Entity",
		"The body is well-formed and breaks rules. errors names the fields at fault, " + events.CountText(
			maxNamedFields,
		) + " at most.",
		"validation failed",
	},
	429: {
		"rate-limit-exceeded",
		"Too Many Requests",
		"Too many requests came in, too many costly ones of the tenant are under way, too many answers wait to be read, or " +
			"a day has as many of something as it may. Retry-After tells in how many seconds to try again.",
		"the rate limit is exceeded; try again later, in 17 s",
	},
	500: {
		"internal",
		"Internal Server Error",
		"The service is at fault. The request's id finds it in the log.",
		"the request could not be carried out; its id finds the reason in the log",
	},
	503: {
		"unavailable",
		"Service Unavailable",
		"A part that the request needs is down or starting, or has too much to do. Retry-After tells in how many seconds " +
			"to try again.",
		"the read models cannot be read at the moment",
	},
}

// newProblem makes a problem. Its type and instance are filled in when it is written. For 429, detail says which limit
// is exceeded; it is empty for the limit of requests.
func newProblem(status int, detail string) *problem {
	if _, ok := kinds[status]; !ok {
		status = http.StatusInternalServerError
	}
	p := &problem{Title: kinds[status].title, Status: status, Detail: detail, headers: http.Header{}}
	switch status {
	case http.StatusUnauthorized:
		p.headers.Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests: // which the interface words
		if detail != "" {
			detail = ": " + detail
		}
		p.Detail = "the rate limit is exceeded" + detail + "; try again later"
	case http.StatusServiceUnavailable:
		p.headers.Set("Retry-After", "1")
	}
	return p
}

// invalid is a problem with fields.
func invalid(fields map[string]string) *problem {
	p := newProblem(http.StatusUnprocessableEntity, "validation failed")
	p.Errors = fields
	return p
}

// Error, GetStatus, GetHeaders and ContentType make a problem an error that huma answers with.

func (p *problem) Error() string           { return p.Detail }
func (p *problem) GetStatus() int          { return p.Status }
func (p *problem) GetHeaders() http.Header { return p.headers }
func (p *problem) ContentType(string) string {
	if p.OAuthError != "" {
		return "application/json" // OAuth clients insist on it
	}
	return "application/problem+json"
}

// identified fills in what the request tells. A caller over a rate limit is told to wait for the next window.
func (p *problem) identified(ctx context.Context) *problem {
	p.bound()
	req := requestOf(ctx)
	if p.exceeded != nil {
		p.exceeded.Show(req.answer)
	}
	if p.Status == http.StatusTooManyRequests && p.headers.Get("Retry-After") == "" {
		p.headers["Retry-After"] = req.answer["RateLimit-Reset"]
	}
	p.Type, p.Instance = req.publicURL+"/problems/"+cmp.Or(p.name, kinds[p.Status].name), "urn:uuid:"+req.id
	return p
}

// problemOf turns the refusals of commands and queries into problems. Anything else is a fault: it is logged, not
// shown.
func problemOf(ctx context.Context, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.identified(ctx)
	}
	if refusal, ok := errors.AsType[*commands.Error](err); ok {
		if refusal.Kind == commands.TooMany && refusal.AtOnce > 0 {
			return noSlot(refusal.AtOnce, refusal.Detail).identified(ctx)
		}
		if refusal.Kind == commands.TooMany && refusal.PerDay > 0 {
			return tooManyRequests(limit.Spent(refusal.PerDay, refusal.UntilReset), refusal.Detail).identified(ctx)
		}
		if p := refused(refusal); p != nil {
			if refusal.Kind == commands.Unavailable {
				requestOf(ctx).log().Warn("unavailable", "err", err)
			}
			return p.identified(ctx)
		}
	}
	switch {
	case errors.Is(err, queries.ErrNotFound):
		return newProblem(http.StatusNotFound, "no such resource").identified(ctx)
	case errors.Is(err, queries.ErrUnavailable):
		requestOf(ctx).log().Warn("unavailable", "err", err)
		return newProblem(http.StatusServiceUnavailable, "the read models cannot be read at the moment").identified(ctx)
	case errors.Is(err, queries.ErrFuture):
		return invalid(map[string]string{"at": queries.ErrFuture.Error()}).identified(ctx)
	case errors.Is(err, queries.ErrTooSlow):
		requestOf(ctx).log().Warn("unavailable", "err", err)
		return newProblem(http.StatusServiceUnavailable,
			"the flags take too long to evaluate; name fewer of them, or simplify their rules").identified(ctx)
	case errors.Is(err, snapshot.ErrTooLarge):
		return invalid(
			map[string]string{"attributes": "are too large to be compared with the rules of the flag in time"},
		).identified(ctx)
	}
	if missing, ok := errors.AsType[*snapshot.NoUnitError](err); ok {
		return invalid(
			map[string]string{unitField(missing.Attribute): "is required: the flag splits its traffic by it"},
		).identified(ctx)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		requestOf(ctx).log().Debug("the caller has gone", "err", err)
		return newProblem(http.StatusServiceUnavailable, "the caller has gone").identified(ctx)
	}
	requestOf(ctx).log().Error("request failed", "err", err)
	return newProblem(http.StatusInternalServerError, kinds[http.StatusInternalServerError].example).identified(ctx)
}

// unitField names what a split buckets by as the body of an evaluation does.
func unitField(attribute string) string {
	if attribute == "targetingKey" {
		return attribute
	}
	return "attributes." + attribute
}

// refused turns the refusal of a command into a problem, nil where it is a fault of the service.
func refused(e *commands.Error) *problem {
	switch e.Kind {
	case commands.Internal:
		return nil
	case commands.Invalid:
		p := invalid(e.Fields)
		p.Detail = e.Detail
		return p
	case commands.Unauthenticated:
		return newProblem(http.StatusUnauthorized, e.Detail)
	case commands.Forbidden:
		return newProblem(http.StatusForbidden, e.Detail)
	case commands.NotFound:
		return newProblem(http.StatusNotFound, e.Detail)
	case commands.Conflict:
		p := newProblem(http.StatusConflict, e.Detail)
		p.name = string(e.Problem)
		return p
	case commands.PreconditionFailed:
		p := newProblem(http.StatusPreconditionFailed, e.Detail)
		p.headers.Set("ETag", etag(e.Version))
		return p
	case commands.TooMany:
		return newProblem(http.StatusTooManyRequests, e.Detail)
	case commands.Unavailable:
		return newProblem(http.StatusServiceUnavailable, e.Detail)
	}
	return nil
}

// writeProblem answers with a problem outside of huma's operations.
func writeProblem(w http.ResponseWriter, r *http.Request, p *problem) {
	if tail, ok := strings.CutPrefix(r.URL.Path, ofrepManyRoute); ok && (tail == "" || tail[0] == '/') {
		writeOFREP(w, r, strings.ToValidUTF8(strings.TrimPrefix(tail, "/"), "\uFFFD"), p)
		return
	}
	p.begin(w, r)
	_ = strictjson.Write(w, p)
}

// begin answers with all of a problem but its body.
func (p *problem) begin(w http.ResponseWriter, r *http.Request) {
	p = p.identified(r.Context())
	if path := routedPath(r); path == grantRoute || path == legacyGrantRoute {
		p.asOAuth()
	}
	for name, values := range p.headers {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
}

// Why a body is not read. The first two are huma's words.
const (
	unreadBody  = "cannot read request body" // the caller broke off
	missingBody = "request body is required"
)

var bodyTooLarge = "the body is larger than " + events.SizeText(maxBody-1)

// humaProblem turns what huma finds wrong with a request into a problem. It replaces huma.NewErrorWithContext.
func humaProblem(ctx huma.Context, status int, detail string, errs ...error) huma.StatusError {
	switch status {
	case http.StatusRequestEntityTooLarge:
		status, detail = http.StatusBadRequest, bodyTooLarge
	case http.StatusRequestTimeout:
		status = http.StatusBadRequest
	case http.StatusInternalServerError:
		if detail == unreadBody {
			return newProblem(http.StatusBadRequest, detail).identified(ctx.Context())
		}
		return problemOf(ctx.Context(), errors.Join(append(errs, errors.New(detail))...))
	}
	if status != http.StatusUnprocessableEntity {
		p := newProblem(status, detail)
		if len(errs) > 0 && status == http.StatusBadRequest {
			p.Detail = message(errs[0])
		}
		return p.identified(ctx.Context())
	}
	wrong := fieldsOf(errs)
	for name, text := range requestOf(ctx.Context()).wrong {
		if wrong[name] != unknownParameter {
			wrong[name] = text
		}
	}
	return invalid(wrong).identified(ctx.Context())
}

// fieldsOf tells what huma finds wrong by field.
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

// memberLeftText explains the 409 that is named commands.MemberLeft.
const memberLeftText = "The person with this address has left the tenant, or declined to be its member. They join " +
	"again only if they accept an invitation: send invitation: true."

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
			}{requestOf(r.Context()).publicURL + "/problems/" + kind.name, kind.title, status, kind.text})
			return
		}
	}
	notFound(w, r)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, newProblem(http.StatusNotFound, "there is no route "+r.URL.Path))
}

// methodNotAllowed answers with the methods that the path takes.
func (a *API) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	p := newProblem(http.StatusMethodNotAllowed, "the route does not take "+r.Method)
	path := r.URL.EscapedPath()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if a.router.Match(chi.NewRouteContext(), method, path) {
			p.headers.Add("Allow", method)
			if method == "GET" {
				p.headers.Add("Allow", "HEAD")
			}
		}
	}
	if len(p.headers["Allow"]) == 0 { // a method that no route has
		notFound(w, r)
		return
	}
	p.headers.Set("Allow", strings.Join(p.headers["Allow"], ", "))
	writeProblem(w, r, p)
}
