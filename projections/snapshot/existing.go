package snapshot

// Complete reports whether the snapshot has held all of the log since its start. A copy on disk may be old, and facts
// that a newer release recorded are missing.
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

// FlagLife returns the revision of the flag's FlagCreated, and false if there is no such flag.
func (s *Snapshot) FlagLife(tenantID, key string) (uint64, bool) {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return 0, false
	}
	f, ok := t.Flag(key)
	if !ok {
		return 0, false
	}
	return uint64(f.usage.Life()), true
}
