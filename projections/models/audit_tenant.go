package models

import (
	"strings"
	"time"

	"flagledger/events"
)

// memberPart returns the part of a tenant's stream that holds a member's role.
func memberPart(id string) string { return "member " + id }

func auditTenant(e events.Recorded) (auditEntry, error) {
	fact, ok := e.Fact.(events.TenantFact)
	if !ok {
		return auditEntry{}, notOfStream(e)
	}
	id := strings.TrimPrefix(e.Stream, events.TenantStream(""))
	changes := fieldChanges{}
	entry := auditEntry{resourceType: "tenant", resourceID: id, part: whole, changes: changes}
	about := func(resourceType, resourceID string) {
		entry.resourceType, entry.resourceID, entry.part = resourceType, resourceID, nil
	}
	member := func(id string, role *events.Role) {
		about("member", id)
		entry.part, entry.name, entry.isRole = new(memberPart(id)), (*string)(role), true
	}
	switch fact := fact.(type) {
	case events.TenantCreated:
		entry.name = &fact.Name
		changes.add("name", nil, fact.Name)
		changes.add("plan", nil, fact.Plan)
		changes.add("isSandbox", nil, fact.Sandbox)
		if !fact.SandboxEndsAt.IsZero() {
			changes.add("sandboxEndsAt", nil, timeOrNull(fact.SandboxEndsAt))
		}
	case events.TenantUpdated:
		entry.name = to(fact.Name)
		addChange(changes, "name", fact.Name)
		for _, field := range fact.Contact {
			changes.addUntold(string(field))
		}
	case events.TenantDeleted:
		entry.gone = "name"
	case events.SubscriptionChanged:
		entry.resourceType = "subscription" // the tenant's id identifies it: a tenant has one
		subscriptionChanges(changes, fact.From, fact.To)
	case events.EnvironmentAdded:
		about("environment", fact.Environment.ID)
		entry.name, entry.environment = &fact.Environment.Name, &fact.Environment.Name
		changes.add("name", nil, fact.Environment.Name)
	case events.EnvironmentDeleted:
		about("environment", fact.Environment.ID)
		entry.name, entry.environment = &fact.Environment.Name, &fact.Environment.Name
		changes.add("name", fact.Environment.Name, nil)
	case events.MemberAdded:
		member(fact.UserID, &fact.Role)
		changes.add("role", nil, fact.Role)
	case events.MemberInvited:
		member(fact.ID, &fact.Role)
		changes.add("role", nil, fact.Role)
		changes.add("pending", nil, true)
		if fact.MustAccept {
			changes.add("mustAccept", nil, true)
		}
	case events.MemberJoined:
		member(fact.UserID, &fact.Role)
		changes.add("userId", fact.ID, fact.UserID)
		changes.add("pending", true, false)
	case events.MemberRoleChanged:
		member(fact.UserID, &fact.To)
		changes.add("role", fact.From, fact.To)
	case events.MemberRemoved:
		member(fact.UserID, nil)
		entry.gone = "role"
	case events.OAuthClientCreated:
		about("oauth_client", fact.ClientID)
		entry.part, entry.name = &fact.ClientID, &fact.Name
		changes.add("name", nil, fact.Name)
		changes.add("scopes", nil, orEmpty(fact.Scopes))
	case events.OAuthSecretRotated:
		about("oauth_client", fact.ClientID)
		entry.part = &fact.ClientID
		changes.add("previousSecretUntil", nil, timeOrNull(fact.PreviousUntil))
	case events.OAuthClientDeleted:
		about("oauth_client", fact.ClientID)
		entry.part, entry.gone = &fact.ClientID, "name"
	}
	return entry, nil
}

func subscriptionChanges(changes fieldChanges, from, to events.Subscription) {
	add := func(field string, from, to any) {
		if from != to {
			changes.add(field, from, to)
		}
	}
	add("id", orNull(from.ID), orNull(to.ID))
	add("customerId", orNull(from.CustomerID), orNull(to.CustomerID))
	add("plan", from.Plan, to.Plan)
	add("status", from.Status, to.Status)
	add("billingCycle", orNull(string(from.BillingCycle)), orNull(string(to.BillingCycle)))
	add("currentPeriodStart", timeOrNull(from.PeriodStart), timeOrNull(to.PeriodStart))
	add("currentPeriodEnd", timeOrNull(from.PeriodEnd), timeOrNull(to.PeriodEnd))
	add("cancelAtPeriodEnd", from.CancelAtPeriodEnd, to.CancelAtPeriodEnd)
	add("pastDueSince", timeOrNull(from.PastDueSince), timeOrNull(to.PastDueSince))
}

// timeOrNull formats a time as the API does; nil for the zero time.
func timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
