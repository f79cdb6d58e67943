package usage

import (
	"encoding/json"
	"time"

	"flagledger/projections/snapshot/evaluation"
)

// node is a node with flags of the tenant t.
type node struct {
	*Meter
	flags map[string]*Flag
}

func (c *cluster) node() *node { return c.nodeAt(func() time.Time { return c.clock }) }

func (c *cluster) nodeAt(now func() time.Time) *node {
	return &node{New(c.pool, paid, now), map[string]*Flag{}}
}

// paid is who created a tenant that pays.
func paid(string) string { return "" }

func (n *node) flag(key string) *Flag {
	if n.flags[key] == nil {
		n.flags[key] = NewFlag(key, 1)
	}
	return n.flags[key]
}

// serving is a result without a variation.
func serving(value string) *evaluation.Result {
	r := &evaluation.Result{Value: json.RawMessage(value), Reason: evaluation.Fallthrough}
	switch value { // flags of the snapshot share these
	case "true":
		r.Value = evaluation.True
	case "false":
		r.Value = evaluation.False
	}
	return r
}

// servingVariation is a result with a variation, which serves its id.
func servingVariation(id string) *evaluation.Result {
	v := &evaluation.Variation{ID: id, Name: "name of " + id, Value: json.RawMessage(`"` + id + `"`)}
	return &evaluation.Result{
		Value: v.Value, Reason: evaluation.Fallthrough, VariationID: id, VariationName: v.Name, Variation: v,
	}
}

// evaluate counts an evaluation that served a value.
func (n *node) evaluate(key, environment, value, client string) {
	n.catchUp()
	n.Count("t", n.flag(key), environment, serving(value), client)
}

func (n *node) prefetch(key, environment string) {
	n.catchUp()
	call := &Call{All: true}
	call.Add(n.flag(key), serving("1"))
	n.CountCall(call, "t", environment, "")
}

// repeat counts evaluations of a flag of a tenant.
func (n *node) repeat(tenantID string, times int) {
	n.catchUp()
	for range times {
		n.Count(tenantID, n.flag(tenantID), "e", serving("1"), "")
	}
}

// catchUp has the node count in the hour of its clock, as if it had flushed until now.
func (n *node) catchUp() { n.lastHour.Store(max(n.lastHour.Load(), hourOf(n.now()))) }

// pendingFlags counts the windows of flags that are to be written.
func (n *node) pendingFlags() (flags int) {
	for _, w := range n.pending {
		if w.flag != nil {
			flags++
		}
	}
	return flags
}
