package snapshot

import "time"

// SandboxEnd is when a tenant takes no more changes; the zero time for one that does not end.
func (s *Snapshot) SandboxEnd(tenantID string) time.Time {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return time.Time{}
	}
	return t.SandboxEnd()
}

// SandboxEnds lists when each sandbox ends, by the tenant's id.
func (s *Snapshot) SandboxEnds() map[string]time.Time {
	ends := map[string]time.Time{}
	s.tenants.Range(func(id string, t *Tenant) bool {
		if state := t.state.Load(); state.exists && state.sandbox {
			if end := t.SandboxEnd(); !end.IsZero() {
				ends[id] = end
			}
		}
		return true
	})
	return ends
}
