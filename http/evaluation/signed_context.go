package evaluation

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
)

const (
	// signedContextHeader carries the context of an evaluation as a signed JWT.
	signedContextHeader = "X-Flag-Context"
	// maxContextLifetime is how far ahead a signed context may expire.
	maxContextLifetime = 24 * time.Hour
	// clockLeeway is the tolerated difference of clocks.
	clockLeeway = time.Minute
)

// readSignedContext replaces the context of the body by the signed one if the caller's key takes signed contexts alone.
// Its error is a problem, 401, for a context that is missing, forged or expired, and a strictjson.FieldError if the body
// has a different one.
func (a *API) readSignedContext(r *http.Request, p *rest.Principal, e *evaluationRequest) error {
	key := p.EvaluationKey()
	if key == nil {
		return nil
	}
	text := r.Header.Get(signedContextHeader)
	if !key.Signed() {
		if text != "" {
			return strictjson.FieldError{Field: signedContextHeader, Text: "is only for signed keys"}
		}
		return nil
	}
	claims, err := a.verifyContext(&key.EvaluationKey, text)
	if err != nil {
		return err
	}
	sent := e.TargetingKey
	if len(e.Attributes) > 0 {
		return strictjson.FieldError{Field: "attributes", Text: "must come in " + signedContextHeader}
	}
	e.body.Reset()
	e.body.Write(claims)
	e.TargetingKey, e.Attributes = "", nil
	if err := e.decode(readClaims); err != nil {
		return rest.NewProblem(http.StatusUnauthorized, signedContextHeader+": "+err.Error())
	}
	if sent != "" && sent != e.TargetingKey {
		return strictjson.FieldError{
			Field: events.TargetingKey, Text: "must be the one in " + signedContextHeader + ", or absent",
		}
	}
	return nil
}

// readClaims reads the claims of a signed context. It skips those that are none of a context.
func readClaims(e *evaluationRequest) error {
	return e.Object(func(name string) error {
		switch name {
		case "targetingKey", "attributes":
			return e.member(name)
		default:
			return e.SkipValue()
		}
	})
}

// verifyContext returns the claims of a signed context. They are valid now, and no longer than maxContextLifetime.
func (a *API) verifyContext(key *state.EvaluationKey, text string) (claims json.RawMessage, err error) {
	refuse := func(why string) error {
		return rest.NewProblem(http.StatusUnauthorized, signedContextHeader+" "+why)
	}
	if text == "" {
		return nil, refuse("is missing: the key requires signed contexts")
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return nil, refuse("must be a JWT that is signed with HS256")
	}
	now := a.Now()
	var registered jwt.Claims
	if !a.signedWith(key.SigningIDs(now), token, &registered, &claims) {
		return nil, refuse("is not signed with a secret of the key")
	}
	switch {
	case registered.Expiry == nil:
		return nil, refuse("needs exp")
	case !now.Before(registered.Expiry.Time()):
		return nil, refuse("has expired")
	case registered.Expiry.Time().Sub(now) > maxContextLifetime+clockLeeway:
		return nil, refuse("must expire within " + events.PeriodText(maxContextLifetime))
	case registered.NotBefore != nil && registered.NotBefore.Time().Sub(now) > clockLeeway:
		return nil, refuse("is not valid yet")
	}
	return claims, nil
}

// signedWith reports whether a token is signed with a secret of one of the ids, and reads its claims.
func (a *API) signedWith(ids []string, token *jwt.JSONWebToken, claims ...any) bool {
	for _, id := range ids {
		secrets, err := a.Secret.SigningSecrets(id)
		if err != nil {
			return false
		}
		for _, secret := range secrets {
			if token.Claims([]byte(secret), claims...) == nil {
				return true
			}
		}
	}
	return false
}

func signedContextParam() *huma.Param {
	return &huma.Param{
		Name:   signedContextHeader,
		In:     "header",
		Schema: &huma.Schema{Type: huma.TypeString},
		Description: "Only with an evaluation key that takes signed contexts: a JWT (HS256 under its signingSecret) with " +
			"the claims targetingKey, attributes and exp",
	}
}
