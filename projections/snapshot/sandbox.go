package snapshot

import "time"

// SandboxEnd is when a tenant takes no more changes; the zero time for one that does not end.
func (s *Snapshot) SandboxEnd(tenantID string, now time.Time) time.Time {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return time.Time{}
	}
	return t.SandboxEnd(now)
}
