package snapshot

import "flagledger/events"

// What use cases ask of people, in words that they have as well.

// Registered reports whether a person has begun to use the service.
func (s *Snapshot) Registered(userID string) bool { return s.User(userID).Registered }

// ShutOut reports whether a person has been deactivated or erased.
func (s *Snapshot) ShutOut(userID string) bool {
	u, ok := s.users.Load(userID)
	return ok && (u.Deactivated || u.Erased)
}

// PlatformRole is what a person may do on the platform.
func (s *Snapshot) PlatformRole(userID string) events.PlatformRole {
	return s.User(userID).PlatformRole
}

// TenantsOf lists the tenants that a person is a member of, the first one first. They must not be changed.
func (s *Snapshot) TenantsOf(userID string) []string { return s.User(userID).Tenants }

// RoleIn tells what a person may do in a tenant that exists, empty for one who is no member.
func (s *Snapshot) RoleIn(tenantID, userID string) events.Role {
	tenant, ok := s.Tenant(tenantID)
	if !ok {
		return ""
	}
	role, _ := tenant.Role(userID)
	return role
}
