package http

import "flagledger/projections/snapshot"

// countOne counts the evaluation of a flag in a call for it alone.
func (a *API) countOne(p *principal, key string, r *snapshot.Result) {
	a.Meter.Count(p.tenant.ID(), 1)
	a.reasons[r.Reason].Inc()
	p.tenant.CountEvaluation(key, p.environment.ID, r, a.callerOf(p), p.tenant.Moment(a.Now()))
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

// manyUsed is what a call for many flags uses of them.
type manyUsed struct {
	snapshot.Tally
	all     bool // the call named none: they are fetched ahead, and perhaps not used
	refused bool
}

// add adds a flag that was evaluated. u may be nil, where nothing counts.
func (u *manyUsed) add(key string, r *snapshot.Result) {
	switch {
	case u == nil:
	case u.all:
		u.Prefetched(key, r)
	default:
		u.Evaluated(key, r)
	}
}

// refuse has nothing counted.
func (u *manyUsed) refuse() {
	if u != nil {
		u.refused = true
	}
}

func (a *API) countMany(p *principal, u *manyUsed) {
	if u.refused {
		return
	}
	a.Meter.Count(p.tenant.ID(), u.Len())
	for reason := range u.Reasons() {
		a.reasons[reason].Inc()
	}
	p.tenant.CountMany(&u.Tally, u.all, p.environment.ID, a.callerOf(p), p.tenant.Moment(a.Now()))
}
