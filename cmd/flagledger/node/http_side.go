package node

import (
	"log/slog"

	"flagledger/cmd/flagledger/node/health"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/http"
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
	superUsers := commands.NewSuperUsers(c.SuperUsers)
	signIn := &commands.SignIn{
		Writer:     w.writer,
		Sessions:   w.identity,
		Directory:  s.directory,
		People:     r.snapshot,
		SuperUsers: superUsers,
		Now:        c.Now,
		Log:        log,
	}
	return httpSide{monitor: monitor, api: http.New(http.Options{
		Writer:       w.writer,
		Queries:      r.queries,
		Reads:        max(1, int(s.pool.Config().MaxConns)/2),
		QueueTimeout: c.WaitTimeout,
		Live:         r.snapshot,
		Changes:      r.snapshot,
		Identity:     w.identity,
		SignIn:       signIn,
		Tenancies:    w.tenancies,
		Sandboxes:    w.sandboxes,
		Links:        s.links,
		SandboxSignUp: &commands.SandboxSignUp{
			Links:     s.links,
			Identity:  w.identity,
			Tenants:   r.queries,
			SignIn:    signIn,
			Sandboxes: w.sandboxes,
		},
		Billing:       w.billing,
		Inbox:         s.inbox,
		Notifications: w.notifications,
		Reclaimer: &commands.Reclaimer{
			Writer:    w.writer,
			People:    r.snapshot,
			Tenancies: w.tenancies,
			Keepings:  []commands.PersonalData{s.tours, s.inbox},
		},
		DailyInvitations: jobs.NewDailyInvitations(s.pool),
		Inviter: &commands.Inviter{
			Writer:      w.writer,
			Directory:   s.directory,
			Invitations: r.queries,
			SuperUsers:  superUsers,
		},
		Keys:              s.signing,
		Secret:            s.secret,
		Directory:         s.directory,
		Meter:             r.meter,
		Tours:             s.tours,
		Checkpoints:       s.checkpoints,
		Idempotency:       s.requests,
		Metrics:           s.metrics,
		LoopbackMetrics:   c.Environment == "development" && c.MetricsAddr == "",
		Log:               log,
		Troubles:          monitor.Problems,
		Status:            monitor.Status,
		Now:               c.Now,
		StaleAfter:        c.StaleFor,
		Quotas:            r.quotas,
		InvitationsPerDay: c.InvitationsPerDay,
		Features:          c.Features,
		Proxies:           c.ProxyNetworks,
		Origins:           c.Origins,
		StreamLimits:      c.Streams,
		SuperUsers:        superUsers,
		PublicURL:         c.PublicURL,
		FollowHost:        c.PublicURLAssumed,
		Environment:       c.Environment,
		Build:             c.Build,
	})}
}
