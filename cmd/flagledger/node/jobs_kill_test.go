package node_test

import (
	"slices"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/migrations/embedded"
)

// Whenever the server is killed, before or during a mail, the mail is sent, and not more often than once more for each kill.
func TestKillingTheServerLosesNoMail(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	underWay, goOn := make(chan struct{}), make(chan struct{})
	mails := mailtest.New(t, mailtest.Options{Refuse: func(n int) error {
		if n == 1 {
			close(underWay)
			<-goOn
		}
		return nil
	}})
	p := nodetest.Build(t)
	setting := "FLAGLEDGER_SMTP_URL=smtp://" + mails.Addr + "?from=flags@example.com"
	running := p.Serve(setting)
	me := p.Service().SignUp("me@example.com")
	type invited struct {
		address string
		kills   int
	}
	var all []*invited
	invite := func() {
		all = append(all, &invited{address: nodetest.Address()})
		me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": all[len(all)-1].address, "role": "viewer"}).Want(201)
	}
	restart := func() {
		running.Kill()
		for _, i := range all {
			i.kills++
		}
		killed := time.Now()
		running = p.Serve(setting)
		url, err := embedded.Connect(t.Context(), p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		s := p.Service()
		s.DatabaseURL = url
		s.ResumeJobs(killed)
	}
	sent := func(address string) (n int) {
		for _, m := range mails.Mails() {
			if m.To == address {
				n++
			}
		}
		return n
	}

	invite()
	select {
	case <-underWay:
	case <-time.After(time.Minute):
		t.Fatal("no mail is under way")
	}
	running.Kill()
	close(goOn) // the mail arrived all the same
	restart()
	for range killCount(3) {
		invite()
		restart()
	}
	p.Service().Eventually("all mails are sent", func() bool {
		return !slices.ContainsFunc(all, func(i *invited) bool { return sent(i.address) == 0 })
	})
	p.Service().Eventually("the mail that was under way is sent again", func() bool { return sent(all[0].address) > 1 })
	for _, i := range all {
		if n := sent(i.address); n > 1+i.kills {
			t.Errorf("a mail was sent %d times, with %d kills", n, i.kills)
		}
	}
}
