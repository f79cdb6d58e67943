package eventstore

// SetPrefixes tells a store which streams are its own.
func (s *Store) SetPrefixes(prefixes ...string) { s.prefixes = prefixes }
