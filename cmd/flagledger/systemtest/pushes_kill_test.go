package systemtest

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/push/pushtest"
	"flagledger/migrations/pgtest"
)

// If the server is killed before or during a push, each device still gets each notification, in order. Each kill causes
// at most one repetition.
func TestKillingTheServerLosesNoPush(t *testing.T) {
	t.Parallel()
	fcm := pushtest.New(t)
	database := pgtest.URL(t)
	p := (&nodetest.Program{Binary: os.Args[0]}).In(t)
	settings := []string{serveSetting + "=1", fcmSetting + "=" + fcm.Endpoint, "FLAGLEDGER_DATABASE_URL=" + database}
	running := p.Serve(settings...)
	me := p.Service().SignUp(nodetest.Address())
	var tokens []string
	for i := range 3 {
		tokens = append(tokens, fmt.Sprint("token-", i))
		me.Call("POST", "/api/v1/notifications/device-tokens", map[string]string{"deviceToken": tokens[i], "deviceType": "web"}).
			Want(201)
	}
	var titles []string
	kills := map[string]int{} // since the notification was sent
	notify := func(title string) {
		titles = append(titles, title)
		me.Call("POST", "/api/v1/notifications/send", map[string]string{"userId": me.UserID, "tenantId": me.Tenant, "title": title, "type": "test"}).
			Want(201)
	}
	each := func(what string, holds func(token string) bool) {
		p.Service().
			Eventually(what, func() bool { return !slices.ContainsFunc(tokens, func(token string) bool { return !holds(token) }) })
	}
	restart := func() {
		running.Kill()
		for _, title := range titles {
			kills[title]++
		}
		killed := time.Now()
		running = p.Serve(settings...)
		s := p.Service()
		s.DatabaseURL = database
		s.ResumeJobs(killed)
		s.RetryJobs()
	}

	fcm.Answer(func(int, pushtest.Message) pushtest.Answer { return pushtest.Answer{Drop: true} })
	notify("not taken before the first kill")
	each("FCM is tried", func(token string) bool { return fcm.Tried(token) > 0 })
	fcm.Answer(func(int, pushtest.Message) pushtest.Answer { return pushtest.Answer{Lost: true} })
	restart()
	notify("sent while a push is under way")
	each("a push is under way", func(token string) bool { return len(fcm.Titles(token)) > 0 })
	running.Kill()
	fcm.Answer(nil)
	restart()
	for i := range 3 {
		notify(fmt.Sprint("sent just before kill ", i))
		restart()
	}
	for _, token := range tokens {
		p.Service().
			Eventually("the device has all", func() bool { return slices.Contains(fcm.Titles(token), titles[len(titles)-1]) })
		got := fcm.Titles(token)
		if order := slices.Compact(slices.Clone(got)); !slices.Equal(order, titles) {
			t.Errorf("a device got %v, want %v", order, titles)
		}
		for _, title := range titles {
			n := 0
			for _, other := range got {
				if other == title {
					n++
				}
			}
			if repeated := title == titles[0]; n > 1+kills[title] || repeated && n < 2 {
				t.Errorf("%q was pushed %d times, with %d kills", title, n, kills[title])
			}
		}
	}
}
