// Package firebase implements the identity provider with Firebase Authentication: the Admin SDK for operator calls,
// and the identity toolkit's public calls for people's passwords.
package firebase

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	firebase "firebase.google.com/go/v4"
	"firebase.google.com/go/v4/auth"
	"github.com/puzpuzpuz/xsync/v4"
	"golang.org/x/oauth2"
	"google.golang.org/api/identitytoolkit/v1"
	"google.golang.org/api/option"

	"flagledger/commands"
	"flagledger/commands/people"
)

// Options are the settings of a Provider. The Admin SDK itself reads GOOGLE_APPLICATION_CREDENTIALS and
// FIREBASE_AUTH_EMULATOR_HOST.
type Options struct {
	ProjectID string
	APIKey    string // without it people can sign in with a password at Firebase only
	Emulator  string // host and port of an emulator, as in FIREBASE_AUTH_EMULATOR_HOST; empty for Firebase
	// End is called with sessions that have ended at Firebase.
	End func(context.Context, commands.EndSessions) error
	// Gone is called with a person whose account was deleted at Firebase. It returns NotFound if the service does not
	// know them.
	Gone func(ctx context.Context, userID string) error
	// Links queues mails with links.
	Links interface {
		QueueVerification(ctx context.Context, userID, cause string) error
		QueueReset(ctx context.Context, email string, now time.Time) error
	}
	CheckEvery time.Duration // the interval of checks for ended sessions; five minutes if 0
	Now        func() time.Time
	Log        *slog.Logger // may be nil
}

// Provider implements people.Identity with Firebase Authentication.
type Provider struct {
	o       Options
	auth    *auth.Client
	toolkit *identitytoolkit.Service
	refresh *oauth2.Config
	keys    *googleKeys
	seen    *xsync.Map[string, sighting]
}

var _ people.Identity = (*Provider)(nil)

// callTimeout limits calls that people wait for. The Admin SDK retries for longer.
const callTimeout = 5 * time.Second

// New returns a provider. It reads Google's keys, but starts without them if that fails.
func New(ctx context.Context, o Options) (*Provider, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.CheckEvery == 0 {
		o.CheckEvery = 5 * time.Minute
	}
	app, err := firebase.NewApp(ctx, &firebase.Config{ProjectID: o.ProjectID})
	if err != nil {
		return nil, err
	}
	accounts, err := app.Auth(ctx)
	if err != nil {
		return nil, err
	}
	exchange := "https://securetoken.googleapis.com/v1/token"
	options := []option.ClientOption{option.WithAPIKey(o.APIKey)}
	if o.Emulator != "" {
		exchange = "http://" + o.Emulator + "/securetoken.googleapis.com/v1/token"
		options = append(options, option.WithEndpoint("http://"+o.Emulator+"/identitytoolkit.googleapis.com/"))
	}
	var toolkit *identitytoolkit.Service // nil without an API key
	if o.APIKey != "" {
		if toolkit, err = identitytoolkit.NewService(ctx, options...); err != nil {
			return nil, err
		}
	}
	keys := newGoogleKeys(o.Now, o.Log)
	if o.Emulator == "" {
		keys.load(ctx)
	}
	return &Provider{
		o:       o,
		auth:    accounts,
		toolkit: toolkit,
		refresh: &oauth2.Config{
			Endpoint: oauth2.Endpoint{
				TokenURL:  exchange + "?key=" + url.QueryEscape(o.APIKey),
				AuthStyle: oauth2.AuthStyleInParams,
			},
		},
		keys: keys,
		seen: xsync.NewMap[string, sighting](),
	}, nil
}

// SignUp creates an account, signs it in and lets Firebase mail a link that verifies the address.
func (p *Provider) SignUp(ctx context.Context, email, password, displayName string) (people.Session, error) {
	made, err := p.signUp(ctx, email, password, displayName)
	if err != nil {
		return people.Session{}, err
	}
	if err := p.o.Links.QueueVerification(ctx, made.LocalId, made.LocalId); err != nil {
		// Setting a new password verifies the address too.
		p.o.Log.WarnContext(ctx, "no link is mailed that verifies an address", "user", made.LocalId, "err", err)
	}
	return p.session(ctx, made.IdToken, made.RefreshToken, made.ExpiresIn)
}

// SignUpVerified works like SignUp for a person who has proved that the address is theirs. If Firebase cannot record
// that, the account exists all the same, and MarkVerified records it.
func (p *Provider) SignUpVerified(ctx context.Context, email, password, displayName string) (people.Session, error) {
	made, err := p.signUp(ctx, email, password, displayName)
	if err != nil {
		return people.Session{}, err
	}
	if err := p.MarkVerified(ctx, made.LocalId); err != nil {
		return people.Session{}, err
	}
	session, err := p.session(ctx, made.IdToken, made.RefreshToken, made.ExpiresIn)
	session.EmailVerified = true // the token is older
	return session, err
}

// MarkVerified records that an account's owner has proved the address.
func (p *Provider) MarkVerified(ctx context.Context, userID string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := p.auth.UpdateUser(ctx, userID, (&auth.UserToUpdate{}).EmailVerified(true)); err != nil {
		return unreachable(err)
	}
	return nil
}

func (p *Provider) signUp(
	ctx context.Context, email, password, displayName string,
) (*identitytoolkit.GoogleCloudIdentitytoolkitV1SignUpResponse, error) {
	if err := people.CheckSignUp(email, password, displayName); err != nil {
		return nil, err
	}
	email, _ = commands.ParseEmail(email)
	if err := p.withPasswords(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	made, err := p.toolkit.Accounts.SignUp(&identitytoolkit.GoogleCloudIdentitytoolkitV1SignUpRequest{
		Email: email, Password: password, DisplayName: displayName,
	}).Context(ctx).Do()
	if err != nil {
		return nil, refusal(err, signingUp)
	}
	return made, nil
}

// SignIn starts a session for a correct address and password.
func (p *Provider) SignIn(ctx context.Context, email, password string) (people.Session, error) {
	in, err := p.signIn(ctx, email, password)
	if err != nil {
		return people.Session{}, err
	}
	return p.session(ctx, in.IdToken, in.RefreshToken, in.ExpiresIn)
}

func (p *Provider) signIn(
	ctx context.Context, email, password string,
) (*identitytoolkit.GoogleCloudIdentitytoolkitV1SignInWithPasswordResponse, error) {
	email, ok := commands.ParseEmail(email)
	if err := p.withPasswords(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !ok || len(password) > commands.MaxPassword {
		return nil, wrongCredentials() // no account can have these
	}
	in, err := p.toolkit.Accounts.SignInWithPassword(&identitytoolkit.GoogleCloudIdentitytoolkitV1SignInWithPasswordRequest{
		Email: email, Password: password, ReturnSecureToken: true,
	}).
		Context(ctx).
		Do()
	if err != nil {
		return nil, refusal(err, signingIn)
	}
	if in.IdToken == "" {
		return nil, unauthenticated("the account asks for a second factor: sign in with Firebase")
	}
	return in, nil
}

// Refresh exchanges a refresh token for new tokens, unless the session has ended. The token can be used until then.
func (p *Provider) Refresh(
	ctx context.Context, refreshToken string, mayContinue func(people.Claims) error,
) (people.Session, error) {
	if err := p.withPasswords(); err != nil {
		return people.Session{}, err
	}
	if refreshToken == "" {
		return people.Session{}, unauthenticated("the refresh token is not valid")
	}
	s, err := p.exchange(ctx, refreshToken)
	if err == nil {
		err = mayContinue(s.Claims)
	}
	if err != nil {
		return people.Session{}, err
	}
	return s, nil
}

func (p *Provider) exchange(ctx context.Context, refreshToken string) (people.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	token, err := p.refresh.TokenSource(ctx, &oauth2.Token{RefreshToken: refreshToken}).Token()
	if err != nil {
		return people.Session{}, refusal(err, refreshing)
	}
	idToken, _ := token.Extra("id_token").(string)
	s, err := p.session(ctx, idToken, token.RefreshToken, token.ExpiresIn)
	if err != nil {
		return people.Session{}, err
	}
	return s, p.checkSession(ctx, s.Claims)
}

// checkSession asks Firebase whether a session has ended.
func (p *Provider) checkSession(ctx context.Context, c people.Claims) error {
	user, err := p.auth.GetUser(ctx, c.UserID)
	switch {
	case auth.IsUserNotFound(err):
		return unauthenticated("the account is gone")
	case err != nil:
		return unreachable(err)
	case user.Disabled:
		return unauthenticated("the account is disabled")
	case c.AuthTime.Before(time.UnixMilli(user.TokensValidAfterMillis)):
		return unauthenticated("the session has ended")
	}
	return nil
}

func (p *Provider) session(
	ctx context.Context, idToken, refreshToken string, expiresIn int64,
) (people.Session, error) {
	claims, err := p.Verify(ctx, idToken)
	if err != nil {
		return people.Session{}, err
	}
	return people.Session{
		Claims:       claims,
		IDToken:      idToken,
		RefreshToken: refreshToken,
		ExpiresIn:    time.Duration(expiresIn) * time.Second,
	}, nil
}

// Revoke ends the refresh tokens of all of a person's sessions, because Firebase cannot end a single one.
func (p *Provider) Revoke(ctx context.Context, userID, _ string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := p.auth.RevokeRefreshTokens(ctx, userID); err != nil && !auth.IsUserNotFound(err) {
		return unreachable(err)
	}
	return nil
}

// EndSessions ends all refresh tokens of a person. Links mailed by Firebase stay valid on its own pages.
func (p *Provider) EndSessions(ctx context.Context, userID string, at time.Time) (commands.EndSessions, error) {
	ends := commands.EndSessions{UserID: userID, Before: at.UTC().Truncate(time.Second).Add(time.Second)}
	return ends, p.Revoke(ctx, userID, "")
}

// Delete deletes an account. It ignores a missing one.
func (p *Provider) Delete(ctx context.Context, userID string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := p.auth.DeleteUser(ctx, userID); err != nil && !auth.IsUserNotFound(err) {
		return unreachable(err)
	}
	return nil
}

// PrepareReset checks the oobCode of a mailed link, and the account. Firebase checks its own password policy only when
// the password is set.
func (p *Provider) PrepareReset(ctx context.Context, token, password string) (people.PasswordChange, error) {
	if err := p.withPasswords(); err != nil {
		return people.PasswordChange{}, err
	}
	if err := people.CheckNewPassword(password); err != nil {
		return people.PasswordChange{}, err
	}
	if token == "" {
		return people.PasswordChange{}, commands.InvalidLink()
	}
	link, err := p.readLink(ctx, token)
	if err != nil {
		return people.PasswordChange{}, err
	}
	if link.RequestType != "PASSWORD_RESET" {
		return people.PasswordChange{}, commands.InvalidLink()
	}
	user, err := p.userByEmail(ctx, link.Email)
	if err != nil {
		return people.PasswordChange{}, err
	}
	if user.Disabled {
		return people.PasswordChange{}, accountDisabled()
	}
	return people.PasswordChange{Ends: p.ends(user.UID, ""), Set: func(ctx context.Context) error {
		return p.setByLink(ctx, token, password)
	}}, nil
}

// readLink returns the address and the purpose of a mailed link without using it up.
func (p *Provider) readLink(
	ctx context.Context, token string,
) (*identitytoolkit.GoogleCloudIdentitytoolkitV1ResetPasswordResponse, error) {
	return p.callLink(ctx, &identitytoolkit.GoogleCloudIdentitytoolkitV1ResetPasswordRequest{OobCode: token})
}

// setByLink sets a person's password and uses up the mailed link.
func (p *Provider) setByLink(ctx context.Context, token, password string) error {
	_, err := p.callLink(ctx,
		&identitytoolkit.GoogleCloudIdentitytoolkitV1ResetPasswordRequest{OobCode: token, NewPassword: password})
	return err
}

func (p *Provider) callLink(
	ctx context.Context, request *identitytoolkit.GoogleCloudIdentitytoolkitV1ResetPasswordRequest,
) (
	*identitytoolkit.GoogleCloudIdentitytoolkitV1ResetPasswordResponse, error,
) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	link, err := p.toolkit.Accounts.ResetPassword(request).Context(ctx).Do()
	if err != nil {
		return nil, refusal(err, following)
	}
	return link, nil
}

func (p *Provider) userByEmail(ctx context.Context, email string) (*auth.UserRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	user, err := p.auth.GetUserByEmail(ctx, email)
	if err != nil {
		return nil, unreachable(err)
	}
	return user, nil
}

// PrepareUpdate checks the current password of a signed-in person. Setting the new one makes Firebase end the refresh
// tokens of all sessions, including this one.
func (p *Provider) PrepareUpdate(
	ctx context.Context, c people.Claims, current, password string,
) (people.PasswordChange, error) {
	if err := people.CheckPasswordChange(current, password); err != nil {
		return people.PasswordChange{}, err
	}
	in, err := p.signIn(ctx, c.Email, current)
	if err != nil {
		return people.PasswordChange{}, err
	}
	if in.LocalId != c.UserID {
		return people.PasswordChange{}, wrongCredentials()
	}
	return people.PasswordChange{Ends: p.ends(c.UserID, c.SessionID), Set: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		_, err := p.toolkit.Accounts.Update(&identitytoolkit.GoogleCloudIdentitytoolkitV1SetAccountInfoRequest{
			IdToken: in.IdToken, Password: password,
		}).Context(ctx).Do()
		if err != nil {
			return refusal(err, changing)
		}
		return nil
	}}, nil
}

// ends returns the sessions that Firebase ends: those from before this second. The next check finds a session that
// begins later with the old password.
func (p *Provider) ends(userID, except string) commands.EndSessions {
	return commands.EndSessions{UserID: userID, Before: p.o.Now().Truncate(time.Second), Except: except}
}

// VerifyEmail marks an address as verified. It takes the oobCode of a mailed link and the password, which Firebase's
// own page does not ask for.
func (p *Provider) VerifyEmail(ctx context.Context, token, password string, mayVerify func(userID string) error) error {
	if err := p.withPasswords(); err != nil {
		return err
	}
	if token == "" {
		return commands.InvalidLink()
	}
	link, err := p.readLink(ctx, token)
	if err != nil {
		return err
	}
	if password == "" {
		return commands.InvalidField("password", "is required")
	}
	user, err := p.userByEmail(ctx, link.Email)
	if err != nil {
		return err
	}
	if err := mayVerify(user.UID); err != nil {
		return err
	}
	if _, err := p.signIn(ctx, link.Email, password); commands.KindOf(err) == commands.Unauthenticated {
		return commands.InvalidField("password", "is wrong")
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = p.toolkit.Accounts.Update(&identitytoolkit.GoogleCloudIdentitytoolkitV1SetAccountInfoRequest{OobCode: token}).
		Context(ctx).
		Do()
	if err != nil {
		return refusal(err, following)
	}
	return nil
}

// Run updates Google's keys and the state of sessions until ctx ends.
func (p *Provider) Run(ctx context.Context) {
	if p.o.Emulator == "" {
		keysDone := make(chan struct{})
		go func() {
			defer close(keysDone)
			p.keys.run(ctx)
		}()
		defer func() { <-keysDone }()
	}
	p.watch(ctx)
}

// withPasswords returns an error if there is no key of the identity toolkit.
func (p *Provider) withPasswords() error {
	if p.toolkit == nil {
		return &commands.Error{Kind: commands.Unavailable, Detail: "not configured: it needs FIREBASE_API_KEY"}
	}
	return nil
}

func sessionID(authTime time.Time) string { return strconv.FormatInt(authTime.Unix(), 10) }

var errNoAnswer = errors.New("it did not answer in time")
