package systemtest

import (
	"fmt"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/identity/firebase/emulator"
)

// If Firebase fails in any way, sign-in, sign-up and refresh return 503 in limited time, existing sessions work, and a
// requested link is mailed after Firebase returns.
func TestOutagesOfFirebase(t *testing.T) { // alone: the Admin SDK reads the environment
	e := emulator.Start(t)
	firebase := nodetest.FaultyHTTP(t, "http://"+e.Host)
	t.Setenv("FIREBASE_AUTH_EMULATOR_HOST", firebase.Addr)
	outages(t, settings.Config{Firebase: settings.Firebase{
		ProjectID: emulator.Project, APIKey: "any", EmulatorHost: firebase.Addr, CheckEvery: 250 * time.Millisecond,
	}}, func(t *testing.T, me *nodetest.Client, f nodetest.Fault) {
		s, newcomer := me.Service, nodetest.Address()
		credentials := fmt.Sprintf(`{"email":%q,"password":%q}`, me.Email, nodetest.Password)
		nobody := s.Anonymous()
		refresh := nobody.Call("POST", "/auth/signin", credentials).Want(200).Object()["refreshToken"].(string)
		leaver := s.SignUp(nodetest.Address())
		firebase.Break(f)
		var calls []waiting
		for path, body := range map[string]string{
			"/auth/signin":                 credentials,
			"/auth/signup":                 fmt.Sprintf(`{"email":%q,"password":%q}`, newcomer, nodetest.Password),
			"/api/v1/auth/refresh":         fmt.Sprintf(`{"refreshToken":%q}`, refresh),
			"/api/v1/auth/reset-password":  `{"token":"a-link","newPassword":"another horse"}`,
			"/api/v1/auth/verify-email":    fmt.Sprintf(`{"token":"a-link","password":%q}`, nodetest.Password),
			"/api/v1/auth/update-password": fmt.Sprintf(`{"currentPassword":%q,"newPassword":"another horse"}`, nodetest.Password),
			"/api/v1/auth/login":           fmt.Sprintf(`{"idToken":%q}`, me.Token),
		} {
			calls = append(calls, startCall(path, func() nodetest.Reply { return me.Attempt("POST", path, body) }))
		}
		if f != nodetest.Garbage { // the Admin SDK reads only its status
			calls = append(calls,
				startCall("logout", func() nodetest.Reply { return leaver.Attempt("POST", "/api/v1/auth/logout", "") }))
		}
		nobody.Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": me.Email}).Want(200)
		othersGoOn(me)
		for _, c := range calls {
			c.refused(t)
		}
		othersGoOn(me)
		s.Eventually("the link is tried", func() bool { return firebase.Failed() > int64(len(calls)) })
		firebase.Mend()
		nobody.Call("POST", "/auth/signin", credentials).Want(200)
		s.JobsRetried()
		e.Code(t, me.Email, "PASSWORD_RESET", "")
		body := map[string]string{"email": newcomer, "password": nodetest.Password}
		nobody.Call("POST", "/auth/signup", body).Want(201) // even if Firebase has created the account before
		nobody.Call("POST", "/auth/signin", body).Want(200)
	})
}
