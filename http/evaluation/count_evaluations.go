package evaluation

import (
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage"
	"flagledger/queries"
)

// countOne counts the evaluation of a flag in a call for it alone.
func (a *API) countOne(p *rest.Principal, flag *snapshot.Flag, r *evaluation.Result) {
	a.evaluated[r.Reason].Inc()
	a.Counter.Count(p.Tenant.ID(), flag.Usage(), p.Environment.ID, r, p.ClientID())
}

// uncounted holds the flags that a call for many has evaluated and not counted yet. Its methods do nothing on nil.
type uncounted struct {
	usage.Call
	a *API
	p *rest.Principal
}

func (u *uncounted) add(answer *queries.Evaluated) {
	if u != nil {
		u.Add(answer.Flag.Usage(), &answer.Result)
	}
}

// count counts what was added since it was called last. Call it before that is sent, which the client may read slowly.
func (u *uncounted) count() {
	if u == nil {
		return
	}
	for _, r := range u.Results() {
		u.a.evaluated[r.Reason].Inc()
	}
	u.a.Counter.CountCall(&u.Call, u.p.Tenant.ID(), u.p.Environment.ID, u.p.ClientID())
}
