package evaluation

import (
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage"
	"flagledger/queries"
)

// countOne counts the evaluation of a flag in a call for it alone, and of the flags that it requires. c is the context
// of the evaluation.
func (a *API) countOne(p *rest.Principal, flag *snapshot.Flag, r *evaluation.Result, c *evaluation.Context) {
	a.evaluated[r.Reason].Inc()
	a.Counter.Count(p.Tenant.ID(), flag.Usage(), p.Environment.ID, r, p.ClientID())
	for key, result := range c.RequiredFlags() {
		if required, ok := p.Tenant.Flag(key); ok {
			a.Counter.CountRequired(p.Tenant.ID(), required.Usage(), p.Environment.ID, result)
		}
	}
}

// uncounted holds the flags that a call for many has evaluated and not counted yet. Its methods do nothing on nil.
type uncounted struct {
	usage.Call
	a *API
	p *rest.Principal
}

// add adds a flag, and those that it requires. c is the context of the evaluation.
func (u *uncounted) add(answer *queries.Evaluated, c *evaluation.Context) {
	if u == nil {
		return
	}
	u.Add(answer.Flag.Usage(), &answer.Result)
	for key, result := range c.RequiredFlags() {
		if required, ok := u.p.Tenant.Flag(key); ok {
			u.AddRequired(required.Usage(), result)
		}
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
