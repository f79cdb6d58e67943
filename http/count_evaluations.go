package http

import "flagledger/projections/snapshot"

// countOne counts the evaluation of a flag in a call for it alone.
func (a *API) countOne(p *principal, key string, r *snapshot.Result) {
	a.Meter.Count(p.tenant.ID(), 1)
	a.evaluated[r.Reason].Inc()
	p.tenant.CountEvaluation(key, p.environment.ID, r, a.callerOf(p), p.tenant.CountTime(a.Now()))
}

// callerOf is whom evaluations are counted for: a client, or nil for people.
func (a *API) callerOf(p *principal) *snapshot.Client {
	if p.machine == nil {
		return nil
	}
	client, ok := a.Live.Client(p.machine.clientID)
	if !ok { // it was deleted meanwhile
		return &snapshot.Client{ID: p.machine.clientID}
	}
	return client
}

// uncounted are the flags that a call for many has evaluated and not counted yet.
type uncounted struct {
	snapshot.Uncounted
	a   *API
	p   *principal
	all bool // the call named none: they are fetched ahead, and perhaps not used
}

// add adds a flag that was evaluated. u may be nil, where nothing counts.
func (u *uncounted) add(key string, r *snapshot.Result) {
	switch {
	case u == nil:
	case u.all:
		u.Prefetched(key, r)
	default:
		u.Evaluated(key, r)
	}
}

// count counts what was added since it was called last. It is called before that is sent, which the client may read
// slowly. u may be nil.
func (u *uncounted) count() {
	if u == nil {
		return
	}
	u.a.Meter.Count(u.p.tenant.ID(), u.Len())
	for reason := range u.Reasons() {
		u.a.evaluated[reason].Inc()
	}
	u.p.tenant.CountMany(&u.Uncounted, u.all, u.p.environment.ID, u.a.callerOf(u.p), u.p.tenant.CountTime(u.a.Now()))
}
