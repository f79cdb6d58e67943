package usage

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"flagledger/projections/usage/counted"
)

// memory is what a node has counted, as the snapshot keeps it.
type memory struct {
	uses    map[string]*remembered
	changed []*remembered
}

type remembered struct {
	counted.Use
	m       *memory
	changed bool
}

func (r *remembered) Retry() {
	for i := range r.Served {
		r.Served[i].New = true
	}
	r.note()
}

func (r *remembered) note() {
	if !r.changed {
		r.changed = true
		r.m.changed = append(r.m.changed, r)
	}
}

func (r *remembered) count() (n uint64) {
	for _, s := range r.Served {
		n += s.Count
	}
	return n
}

func (m *memory) TakeUses() iter.Seq[counted.Use] {
	return func(yield func(counted.Use) bool) {
		changed := m.changed
		m.changed = nil
		for i, r := range changed {
			r.changed = false
			u := r.Use
			u.Served, u.Callers, u.Source = slices.Clone(u.Served), slices.Clone(u.Callers), r
			for i := range r.Served {
				r.Served[i].New = false
			}
			if !yield(u) {
				m.changed = append(m.changed, changed[i+1:]...)
				return
			}
		}
	}
}

func (m *memory) UsesWritten(time.Time) {}

func (m *memory) use(key, environment string, life uint64, at time.Time) *remembered {
	hour := at.Truncate(time.Hour)
	name := fmt.Sprint(key, " ", environment, " ", life, " ", hour)
	if m.uses == nil {
		m.uses = map[string]*remembered{}
	}
	r := m.uses[name]
	if r == nil {
		r = &remembered{
			Use: counted.Use{TenantID: "t", FlagKey: key, Life: life, EnvironmentID: environment, Hour: hour},
			m:   m,
		}
		m.uses[name] = r
	}
	r.note()
	return r
}

// evaluate counts an evaluation that served a value to a client.
func (m *memory) evaluate(key, environment, value, client string, at time.Time) {
	for _, of := range []struct{ key, value string }{{key, value}, {"", ""}} {
		life := uint64(1)
		if of.key == "" {
			life = 0
		}
		r := m.use(of.key, environment, life, at)
		r.Evaluated = at
		i := slices.IndexFunc(r.Served, func(s counted.Served) bool { return string(s.Value) == of.value })
		if i < 0 {
			i = len(r.Served)
			r.Served = append(r.Served, counted.Served{Value: []byte(of.value), Reason: "FALLTHROUGH", New: true})
		}
		r.Served[i].Count++
		i = slices.IndexFunc(r.Callers, func(c counted.Caller) bool { return c.ClientID == client })
		if i < 0 {
			i = len(r.Callers)
			r.Callers = append(r.Callers, counted.Caller{ClientID: client})
		}
		r.Callers[i].Count++
		r.Callers[i].Seen = at
	}
}

func (m *memory) prefetch(key, environment string, at time.Time) {
	for of, life := range map[string]uint64{key: 1, "": 0} {
		r := m.use(of, environment, life, at)
		r.Prefetched = at
		r.Prefetches++
	}
}
