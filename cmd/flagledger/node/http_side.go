package node

import (
	"log/slog"

	"flagledger/cmd/flagledger/node/health"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands/jobs"
	"flagledger/commands/people"
	"flagledger/commands/sandbox"
	"flagledger/http"
	"flagledger/http/accounts"
	"flagledger/http/evaluation"
	"flagledger/http/rest"
	"flagledger/http/tenants"
)

// httpSide is what callers and operators see of a node.
type httpSide struct {
	api     *http.API
	monitor *health.Monitor
}

func newHTTPSide(c settings.Config, s stores, r readSide, w writeSide, log *slog.Logger) httpSide {
	monitor := health.New(health.Options{
		Pool:       s.pool,
		Store:      s.events,
		InDatabase: c.EventStoreURL == "",
		Snapshot:   r.snapshot,
		Progress:   r.progress,
		Signs:      s.signing.Signs,
		Jobs:       s.jobs,
		Reactions:  w.reactions,
		Disk:       s.disk,
		Data:       c.Data,
	})
	s.metrics.MustRegister(monitor)
	superUsers := people.NewSuperUsers(c.SuperUsers)
	signIn := &people.SignIn{
		Writer:     w.writer,
		Sessions:   w.identity,
		Directory:  s.directory,
		People:     r.snapshot,
		SuperUsers: superUsers,
		Now:        c.Now,
		Log:        log,
	}
	return httpSide{monitor: monitor, api: http.New(http.Options{
		Options: rest.Options{
			Writer:       w.writer,
			Queries:      r.queries,
			Reads:        max(1, int(s.pool.Config().MaxConns)/2),
			QueueTimeout: c.WaitTimeout,
			Live:         r.snapshot,
			Identity:     w.identity,
			SignIn:       signIn,
			Keys:         s.signing,
			Directory:    s.directory,
			Idempotency:  s.requests,
			Meter:        r.meter,
			Counter:      r.meter,
			Quotas:       r.quotas,
			Secret:       s.secret,
			SuperUsers:   superUsers,
			Now:          c.Now,
			Metrics:      s.metrics,
			Log:          log,
			Proxies:      c.ProxyNetworks,
			Origins:      c.Origins,
			PublicURL:    c.PublicURL,
			FollowHost:   c.PublicURLAssumed,
			Environment:  c.Environment,
		},
		Accounts: accounts.Options{
			Reclaimer: &people.Reclaimer{
				Writer:    w.writer,
				People:    r.snapshot,
				Tenancies: w.tenancies,
				Keepings:  []people.PersonalData{s.tours, s.inbox},
			},
			SandboxSignUp: &sandbox.SignUp{
				Links:     s.links,
				Identity:  w.identity,
				Tenants:   r.queries,
				SignIn:    signIn,
				Sandboxes: w.sandboxes,
			},
			Links:         s.links,
			Inbox:         s.inbox,
			Notifications: w.notifications,
			Tours:         s.tours,
		},
		Tenants: tenants.Options{
			Tenancies: w.tenancies,
			Sandboxes: w.sandboxes,
			Inviter: &people.Inviter{
				Writer:      w.writer,
				Directory:   s.directory,
				Invitations: r.queries,
				SuperUsers:  superUsers,
			},
			Windows:           jobs.NewWindows(s.pool),
			InvitationsPerDay: c.InvitationsPerDay,
		},
		Evaluation: evaluation.Options{
			Changes:        r.snapshot,
			Feeds:          r.snapshot,
			Reports:        r.meter,
			StreamLimits:   c.Streams,
			SigningSecrets: s.secret.SigningSecrets,
		},
		Billing:         w.billing,
		Checkpoints:     s.checkpoints,
		Salts:           s.salts,
		StaleAfter:      c.StaleFor,
		Features:        c.Features,
		Build:           c.Build,
		LoopbackMetrics: c.Environment == "development" && c.MetricsAddr == "",
		Troubles:        monitor.Problems,
		Status:          monitor.Status,
	})}
}
