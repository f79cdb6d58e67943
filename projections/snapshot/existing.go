package snapshot

// Complete reports whether all of the log was in the snapshot at some time since its start. What is read from a copy on
// disk alone may be old, and facts that a newer release has recorded are missing.
func (s *Snapshot) Complete() bool { return s.live.Load() && s.Faults() == 0 }

// EnvironmentIDs lists a tenant's environments, and returns false if there is no such tenant.
func (s *Snapshot) EnvironmentIDs(tenantID string) (ids []string, exists bool) {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return nil, false
	}
	for _, e := range t.Environments() {
		ids = append(ids, e.ID)
	}
	return ids, true
}

// FlagLife is the revision of the FlagCreated that a flag began with, and false if there is no such flag.
func (s *Snapshot) FlagLife(tenantID, key string) (uint64, bool) {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return 0, false
	}
	f, ok := t.Flag(key)
	if !ok {
		return 0, false
	}
	return uint64(f.life), true
}
