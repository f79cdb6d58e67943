package systemtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/push/pushtest"
)

// While FCM is down, hangs, returns garbage or is busy, other calls and jobs work. After it returns, each device gets
// all that it missed, in order.
func TestAnOutageOfFCM(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	for name, fault := range map[string]pushtest.Answer{
		"down": {Drop: true}, "hanging": {Hang: hang}, "garbage": {Body: "<html>"}, "too busy": {Status: http.StatusTooManyRequests, Code: "QUOTA_EXCEEDED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fcm := pushtest.New(t)
			fcm.Answer(func(int, pushtest.Message) pushtest.Answer { return fault })
			s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", PushEndpoint: fcm.Endpoint},
				nodetest.Log(t))
			me := s.SignUp(nodetest.Address())
			var tokens, titles []string
			for i := range 10 { // more than a node pushes at once
				tokens = append(tokens, fmt.Sprint("token-", i))
				me.Call("POST", "/api/v1/notifications/device-tokens", map[string]string{"deviceToken": tokens[i], "deviceType": "web"}).
					Want(201)
			}
			for i := range 3 {
				titles = append(titles, fmt.Sprint("title ", i))
				me.Call("POST", "/api/v1/notifications/send", map[string]string{"userId": me.UserID, "tenantId": me.Tenant, "title": titles[i], "type": "test"}).
					Want(201)
			}
			s.Eventually("FCM is tried", func() bool { return fcm.Tried(tokens[0])+fcm.Tried(tokens[1]) > 0 })
			me.CreateEnabledFlag("k", nil)
			me.Evaluate("k", `{}`).Want(200)
			member := me.Join("viewer")
			s.Eventually("the service notifies", func() bool {
				return strings.Contains(string(member.Call("GET", "/api/v1/notifications", nil).Want(200).Body),
					"tenant.member_added")
			})
			if got := fcm.Taken(); len(got) > 0 {
				t.Errorf("FCM has taken %v", got)
			}
			fcm.Answer(nil)
			titles = append(titles, "Your invitation to Personal workspace was accepted")
			for _, token := range tokens {
				s.Eventually("the device has all", func() bool { return len(fcm.Titles(token)) >= len(titles) })
				if diff := cmp.Diff(titles, fcm.Titles(token)); diff != "" {
					t.Errorf("a device got (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// A pending push is not sent to a person who has left its tenant.
func TestNothingOfATenantIsPushedToWhoHasLeft(t *testing.T) {
	t.Parallel()
	fcm := pushtest.New(t)
	fcm.Answer(func(int, pushtest.Message) pushtest.Answer {
		return pushtest.Answer{Status: http.StatusTooManyRequests, Code: "QUOTA_EXCEEDED"}
	})
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", PushEndpoint: fcm.Endpoint},
		nodetest.Log(t))
	me, email := s.SignUp(nodetest.Address()), nodetest.Address()
	member := s.SignUp(email)
	me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": email, "role": "viewer"}).Want(201)
	s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Want(200)
	joined := *member
	joined.Tenant = me.Tenant
	joined.Stay()
	member.Call("POST", "/api/v1/notifications/device-tokens", map[string]string{"deviceToken": "token", "deviceType": "web"}).
		Want(201)
	send := func(by *nodetest.Client, title string) {
		by.Call("POST", "/api/v1/notifications/send", map[string]string{"userId": member.UserID, "tenantId": by.Tenant, "title": title, "type": "test"}).
			Want(201)
	}
	send(me, "of the tenant that they leave")
	send(member, "of their own")
	s.Eventually("FCM is tried", func() bool { return fcm.Tried("token") > 0 })
	me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/users/"+member.UserID, nil).Want(204)
	before := fcm.Tried("token")
	s.Eventually("a push that was under way is over", func() bool { return fcm.Tried("token") > before })
	fcm.Answer(nil)
	s.Eventually("the rest is pushed", func() bool { return len(fcm.Titles("token")) > 0 })
	if diff := cmp.Diff([]string{"of their own"}, fcm.Titles("token")); diff != "" {
		t.Errorf("the device got (-want +got):\n%s", diff)
	}
}
