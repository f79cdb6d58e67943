package snapshot

import (
	"time"

	"flagledger/events"
)

// These methods implement the reads that commands needs about people.

// Registered reports whether a person has registered.
func (s *Snapshot) Registered(userID string) bool { return s.User(userID).Registered }

// ShutOut reports whether a person has been deactivated or erased.
func (s *Snapshot) ShutOut(userID string) bool {
	if u, ok := s.users.Load(userID); ok && (u.Deactivated || u.Erased) {
		return true
	}
	_, erased := s.ended.Load(session{userID, allSessions})
	return erased
}

// PlatformRole returns a person's role on the platform, empty if they have none.
func (s *Snapshot) PlatformRole(userID string) events.PlatformRole {
	return s.User(userID).PlatformRole
}

// TenantsOf returns the ids of a person's tenants: first the first one they created, then the others by when they
// joined. The caller must not change the list.
func (s *Snapshot) TenantsOf(userID string) []string { return s.User(userID).Tenants }

// JoinedAt returns when an added or invited person became a member of a tenant; zero for other members and for
// non-members.
func (s *Snapshot) JoinedAt(tenantID, userID string) time.Time {
	tenant, ok := s.Tenant(tenantID)
	if !ok {
		return time.Time{}
	}
	return tenant.JoinedAt(userID)
}

// CreatorOf returns the id of the person who created a tenant, empty if it does not exist.
func (s *Snapshot) CreatorOf(tenantID string) string {
	tenant, ok := s.Tenant(tenantID)
	if !ok {
		return ""
	}
	return tenant.Creator()
}

// RoleIn returns a person's role in a tenant, empty if they are not a member or the tenant does not exist.
func (s *Snapshot) RoleIn(tenantID, userID string) events.Role {
	tenant, ok := s.Tenant(tenantID)
	if !ok {
		return ""
	}
	role, _ := tenant.Role(userID)
	return role
}
