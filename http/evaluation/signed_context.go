package evaluation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
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
	// maxContext is the size of the largest signed context, in bytes.
	maxContext = 8 << 10
	// maxContextLifetime is how far ahead a signed context may expire.
	maxContextLifetime = 24 * time.Hour
	// clockLeeway is the tolerated difference of clocks.
	clockLeeway = time.Minute
)

// readSignedContext replaces the context of the body by the signed one if the caller's key requires signed contexts.
// Its error is a 401 for a context that is missing, forged or expired, and a strictjson.FieldError if the body has a
// different one.
func (a *API) readSignedContext(r *http.Request, p *rest.Principal, e *evaluationRequest) error {
	key, text := p.EvaluationKey(), r.Header.Get(signedContextHeader)
	if key == nil || !key.Signed() {
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
	if len(text) > maxContext {
		return nil, refuse("must be at most " + events.SizeText(maxContext))
	}
	now := a.Now()
	secret, ok := a.signedWith(key.SigningIDs(now), text)
	if !ok {
		return nil, refuse("is not signed with HS256 and a secret of the key")
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return nil, refuse("must be a JWT that is signed with HS256")
	}
	var registered struct { // of RFC 7519; nobody here reads the others
		Expiry    *jwt.NumericDate `json:"exp"`
		NotBefore *jwt.NumericDate `json:"nbf"`
	}
	if err := token.Claims(secret, &registered, &claims); err != nil {
		return nil, refuse("has claims that cannot be read")
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

// signedWith finds the secret, of those with the ids, that a JWT is signed with (RFC 7515, HMAC SHA-256). It parses
// nothing, since a caller may send many forged ones.
func (a *API) signedWith(ids []string, text string) (secret []byte, ok bool) {
	dot := strings.LastIndexByte(text, '.')
	signature, err := base64.RawURLEncoding.DecodeString(text[dot+1:])
	if dot < 0 || err != nil {
		return nil, false
	}
	for _, id := range ids {
		secrets, err := a.SigningSecrets(id)
		if err != nil {
			return nil, false
		}
		for _, secret := range secrets {
			mac := hmac.New(sha256.New, []byte(secret))
			_, _ = mac.Write([]byte(text[:dot]))
			if hmac.Equal(mac.Sum(nil), signature) {
				return []byte(secret), true
			}
		}
	}
	return nil, false
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
