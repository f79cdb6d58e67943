package snapshot

import "time"

// SandboxEnd returns when a sandbox stops accepting changes; zero if it does not end.
func (s *Snapshot) SandboxEnd(tenantID string) time.Time {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return time.Time{}
	}
	return t.SandboxEnd()
}

// SandboxEnds returns when each sandbox ends by tenant id.
func (s *Snapshot) SandboxEnds() map[string]time.Time {
	ends := map[string]time.Time{}
	s.tenants.Range(func(id string, t *Tenant) bool {
		if state := t.state.Load(); state.Exists && state.Sandbox {
			if end := t.SandboxEnd(); !end.IsZero() {
				ends[id] = end
			}
		}
		return true
	})
	return ends
}
