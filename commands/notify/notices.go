package notify

import (
	"context"

	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// Types of the service's own notifications. Clients know them, so they never change.
const (
	MemberAddedNotice        = "tenant.member_added"
	RoleChangedNotice        = "tenant.role_changed"
	InvitationAcceptedNotice = "invitation.accepted"
	PaymentFailedNotice      = "billing.payment_failed"
	SandboxEndingNotice      = "sandbox.ending"
	SandboxDeletionNotice    = "sandbox.deletion"
)

// ownTypes may not be sent by callers: clients show these notifications as the service's word.
var ownTypes = []string{
	MemberAddedNotice, RoleChangedNotice, InvitationAcceptedNotice, PaymentFailedNotice, SandboxEndingNotice,
	SandboxDeletionNotice,
}

// MemberAdded notifies a person that they are a member of a tenant now. It does not show the tenant's name, which a
// stranger may have chosen.
func (s *Notifications) MemberAdded(ctx context.Context, cause, tenantID, userID string) error {
	tenant, err := writer.ReadTenant(ctx, s.Writer, tenantID)
	if err != nil {
		return err
	}
	return s.Notify(ctx, cause, ofTenant(tenant, Notification{
		UserID: userID,
		asks:   true,
		Type:   MemberAddedNotice,
		Title:  "You are now a member of another tenant",
		Body:   roleSentence(tenant, userID),
	}))
}

// RoleChanged notifies a member of a tenant of a new role. As MemberAdded, it does not show the tenant's name.
func (s *Notifications) RoleChanged(ctx context.Context, cause, tenantID, userID string) error {
	tenant, err := writer.ReadTenant(ctx, s.Writer, tenantID)
	if err != nil {
		return err
	}
	return s.Notify(ctx, cause, ofTenant(tenant, Notification{
		UserID: userID,
		Type:   RoleChangedNotice,
		Title:  "Your role in a tenant has changed",
		Body:   roleSentence(tenant, userID),
	}))
}

// InvitationAccepted notifies the inviter that a person has joined a tenant. It has the person's id but no name,
// because the notification would outlive their erasure.
func (s *Notifications) InvitationAccepted(ctx context.Context, cause, tenantID, userID string) error {
	tenant, err := writer.ReadTenant(ctx, s.Writer, tenantID)
	if err != nil {
		return err
	}
	inviter := tenant.Members[userID].InvitedBy
	if inviter == "" {
		return nil
	}
	return s.Notify(ctx, cause, ofTenant(tenant, Notification{
		UserID: inviter,
		Type:   InvitationAcceptedNotice,
		Title:  "Your invitation to " + tenant.Name + " was accepted",
		Body:   "A person whom you invited is a member now.",
		Data:   map[string]string{"userId": userID},
	}))
}

// PlatformInvitationAccepted notifies the inviter that a person has accepted a platform role.
func (s *Notifications) PlatformInvitationAccepted(ctx context.Context, cause, invitationID string) error {
	invitation, err := writer.ReadInvitation(ctx, s.Writer, invitationID)
	if err != nil || invitation.ID == "" {
		return err
	}
	return s.Notify(ctx, cause, Notification{
		UserID:      invitation.InvitedBy,
		Type:        InvitationAcceptedNotice,
		Title:       "Your invitation to the platform was accepted",
		Body:        "A person whom you invited has the platform role " + string(invitation.Role) + " now.",
		ActionType:  "invitation",
		ReferenceID: invitationID,
	})
}

// PaymentFailed notifies the admins of a tenant that its subscription could not be paid.
func (s *Notifications) PaymentFailed(ctx context.Context, cause, tenantID string) error {
	tenant, err := writer.ReadTenant(ctx, s.Writer, tenantID)
	if err != nil {
		return err
	}
	return s.NotifyAdmins(ctx, cause, ofTenant(tenant, Notification{
		Type:  PaymentFailedNotice,
		Title: "A payment for " + tenant.Name + " failed",
		Body:  "Check the way of payment: the plan ends soon if it stays unpaid.",
	}))
}

// ofTenant fills in the common fields of notifications about a tenant.
func ofTenant(t state.Tenant, n Notification) Notification {
	n.TenantID, n.ActionType, n.ReferenceID = t.ID, "tenant", t.ID
	return n
}

func roleSentence(t state.Tenant, userID string) string {
	switch t.Members[userID].Role {
	case events.AdminRole:
		return "Your role is admin."
	case events.DeveloperRole:
		return "Your role is developer."
	case events.ViewerRole:
		return "Your role is viewer."
	default:
		return ""
	}
}
