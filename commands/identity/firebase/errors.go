package firebase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"flagledger/commands"
)

// doing is the operation at Firebase, which determines the wrong fields.
type doing int

const (
	signingUp doing = iota
	signingIn
	refreshing
	following // a mailed link was opened
	changing  // a password is changed
)

// codeOf returns Firebase's error code, such as EMAIL_NOT_FOUND, or "".
func codeOf(err error) string {
	code, _ := codeAndText(err)
	return code
}

// codeAndText splits an error such as "WEAK_PASSWORD : Password should be at least 6 characters".
func codeAndText(err error) (code, text string) {
	message := ""
	if toolkit, ok := errors.AsType[*googleapi.Error](err); ok {
		message = toolkit.Message
	} else if refresh, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		var body struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(refresh.Body, &body) == nil {
			message = body.Error.Message
		}
	}
	code, text, _ = strings.Cut(message, ":")
	return strings.TrimSpace(code), strings.TrimSpace(text)
}

// refusal turns an error of Firebase into ours. With email enumeration protection, Firebase returns
// INVALID_LOGIN_CREDENTIALS instead of EMAIL_NOT_FOUND and INVALID_PASSWORD.
func refusal(err error, when doing) error {
	code, text := codeAndText(err)
	switch code {
	case "INVALID_LOGIN_CREDENTIALS", "EMAIL_NOT_FOUND", "INVALID_PASSWORD", "MISSING_PASSWORD", "MISSING_EMAIL":
		return wrongCredentials()
	case "INVALID_EMAIL":
		if when == signingIn {
			return wrongCredentials()
		}
		return commands.InvalidField("email", "must be an e-mail address")
	case "USER_DISABLED":
		if when == signingIn {
			return wrongCredentials() // Firebase checks this before the password
		}
		return accountDisabled()
	case "EMAIL_EXISTS":
		return &commands.Error{Kind: commands.Conflict, Detail: "an account with this e-mail address already exists"}
	case "WEAK_PASSWORD", "PASSWORD_DOES_NOT_MEET_REQUIREMENTS":
		field := "newPassword"
		if when == signingUp {
			field = "password"
		}
		if text == "" {
			text = "is too weak"
		}
		return commands.InvalidField(field, text)
	case "INVALID_OOB_CODE", "EXPIRED_OOB_CODE", "MISSING_OOB_CODE":
		return commands.InvalidLink()
	case "TOKEN_EXPIRED",
		"INVALID_REFRESH_TOKEN",
		"MISSING_REFRESH_TOKEN",
		"INVALID_GRANT_TYPE",
		"USER_NOT_FOUND",
		"INVALID_ID_TOKEN",
		"CREDENTIAL_TOO_OLD_LOGIN_AGAIN":
		switch when {
		case following:
			return commands.InvalidLink()
		case refreshing:
			return unauthenticated("the refresh token is not valid")
		}
		return unauthenticated("the session has ended")
	case "TOO_MANY_ATTEMPTS_TRY_LATER", "RESET_PASSWORD_EXCEED_LIMIT", "QUOTA_EXCEEDED":
		return &commands.Error{Kind: commands.TooMany, Detail: "Firebase has seen too many attempts"}
	case "OPERATION_NOT_ALLOWED", "PASSWORD_LOGIN_DISABLED", "ADMIN_ONLY_OPERATION", "CONFIGURATION_NOT_FOUND":
		return &commands.Error{
			Kind:   commands.Unavailable,
			Detail: "not configured: the Firebase project does not take passwords",
			Err:    secretless(err),
		}
	}
	return unreachable(err)
}

func unreachable(err error) error {
	return &commands.Error{
		Kind:   commands.Unavailable,
		Detail: "Firebase cannot be reached at this moment, or refuses the service",
		Err:    secretless(err),
	}
}

// secretless returns an error for the log without URLs, which hold the API key, and without bodies, which may hold
// tokens.
func secretless(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return errNoAnswer
	}
	if toolkit, ok := errors.AsType[*googleapi.Error](err); ok {
		return fmt.Errorf("Firebase answered %d %s", toolkit.Code, toolkit.Message) //nolint:staticcheck // a name
	}
	if refresh, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("Firebase answered %d %s", refresh.Response.StatusCode, codeOf(err)) //nolint:staticcheck // a name
	}
	if call, ok := errors.AsType[*url.Error](err); ok {
		return call.Err
	}
	return err
}

func unauthenticated(detail string) error {
	return &commands.Error{Kind: commands.Unauthenticated, Detail: detail}
}

func wrongCredentials() error { return unauthenticated("the e-mail address or the password is wrong") }

func accountDisabled() error { return unauthenticated("the account is disabled") }
