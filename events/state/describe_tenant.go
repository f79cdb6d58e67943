package state

import (
	"slices"
	"strings"
	"time"

	"flagledger/events"
)

// MemberPart returns the Part of a tenant's stream that a member is.
func MemberPart(id string) string { return "member " + id }

func describeTenant(e events.Recorded) (Description, error) {
	fact, ok := e.Fact.(events.TenantFact)
	if !ok {
		return Description{}, notOfStream(e)
	}
	id := strings.TrimPrefix(e.Stream, events.TenantStream(""))
	changes := Changes{}
	entry := Description{ResourceType: "tenant", ResourceID: id, Part: whole, Changes: changes}
	about := func(resourceType, resourceID string) {
		entry.ResourceType, entry.ResourceID, entry.Part = resourceType, resourceID, nil
	}
	member := func(id string, role *events.Role) {
		about("member", id)
		entry.Part, entry.Name, entry.NameIsRole = new(MemberPart(id)), (*string)(role), true
	}
	switch fact := fact.(type) {
	case events.TenantCreated:
		entry.Name = &fact.Name
		changes.add("name", nil, fact.Name)
		changes.add("plan", nil, fact.Plan)
		changes.add("isSandbox", nil, fact.Sandbox)
		if !fact.SandboxEndsAt.IsZero() {
			changes.add("sandboxEndsAt", nil, timeOrNull(fact.SandboxEndsAt))
		}
	case events.TenantUpdated:
		entry.Name = to(fact.Name)
		addChange(changes, "name", fact.Name)
		for _, field := range fact.Contact {
			changes.addUntold(string(field))
		}
	case events.FlagRulesChanged:
		from, to := fact.From, fact.To
		if !events.StoredEqual(from.Naming, to.Naming) {
			changes.add("naming", from.Naming, to.Naming)
		}
		if !slices.Equal(from.RequireReason, to.RequireReason) {
			changes.add("requireReason", environmentNames(from.RequireReason), environmentNames(to.RequireReason))
		}
		if from.RequireOwner != to.RequireOwner {
			changes.add("requireOwner", from.RequireOwner, to.RequireOwner)
		}
	case events.TenantDeleted:
		entry.Gone = "name"
	case events.SubscriptionChanged:
		entry.ResourceType = "subscription" // under the tenant's id: a tenant has one
		subscriptionChanges(changes, fact.From, fact.To)
	case events.EnvironmentAdded:
		about("environment", fact.Environment.ID)
		entry.Name, entry.Environment = &fact.Environment.Name, &fact.Environment.Name
		changes.add("name", nil, fact.Environment.Name)
	case events.EnvironmentDeleted:
		about("environment", fact.Environment.ID)
		entry.Name, entry.Environment = &fact.Environment.Name, &fact.Environment.Name
		changes.add("name", fact.Environment.Name, nil)
	case events.EnvironmentsArranged:
		arrangementChanges(changes, fact)
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
		entry.Gone = "role"
	case events.OAuthClientCreated:
		about("oauth_client", fact.ClientID)
		entry.Part, entry.Name = &fact.ClientID, &fact.Name
		changes.add("name", nil, fact.Name)
		changes.add("scopes", nil, orEmpty(fact.Scopes))
	case events.OAuthSecretRotated:
		about("oauth_client", fact.ClientID)
		entry.Part = &fact.ClientID
		changes.add("previousSecretUntil", nil, timeOrNull(fact.PreviousUntil))
	case events.OAuthClientDeleted:
		about("oauth_client", fact.ClientID)
		entry.Part, entry.Gone = &fact.ClientID, "name"
	case events.EvaluationKeyAdded, events.EvaluationKeyChanged, events.EvaluationKeyRotated, events.EvaluationKeyRemoved:
		describeEvaluationKey(&entry, e)
	}
	return entry, nil
}

func describeEvaluationKey(entry *Description, e events.Recorded) {
	fact, _ := e.Fact.(events.EvaluationKeyFact)
	id := EvaluationKeyID(fact)
	entry.ResourceType, entry.ResourceID, entry.Part = "evaluation_key", id, &id
	switch fact := fact.(type) {
	case events.EvaluationKeyAdded:
		entry.Name, entry.Environment = &fact.Name, &fact.Environment.Name
		entry.Changes.add("name", nil, fact.Name)
		entry.Changes.add("kind", nil, fact.Kind)
		entry.Changes.add("environment", nil, fact.Environment.Name)
		if len(fact.Origins) > 0 {
			entry.Changes.add("origins", nil, fact.Origins)
		}
		if fact.Edge {
			entry.Changes.add("edge", nil, true)
		}
		if fact.SigningID != "" {
			entry.Changes.add("signed", nil, true)
		}
		if !fact.ExpiresAt.IsZero() {
			entry.Changes.add("expiresAt", nil, timeOrNull(fact.ExpiresAt))
		}
	case events.EvaluationKeyChanged:
		entry.Name, entry.Environment = to(fact.Name), nameOrNil(fact.Environment)
		addChange(entry.Changes, "name", fact.Name)
		if fact.Origins != nil {
			entry.Changes.add("origins", orEmpty(fact.Origins.From), orEmpty(fact.Origins.To))
		}
		if at := fact.ExpiresAt; at != nil {
			entry.Changes.add("expiresAt", expiryOrNull(at.From), expiryOrNull(at.To))
		}
	case events.EvaluationKeyRotated:
		entry.Environment = nameOrNil(fact.Environment)
		entry.Changes.add("previousKeyUntil", nil, timeOrNull(fact.PreviousUntil))
	case events.EvaluationKeyRemoved:
		entry.Gone, entry.Environment = "name", nameOrNil(fact.Environment)
	}
}

// nameOrNil returns the name of an environment, or nil for a fact that does not have it.
func nameOrNil(e events.EnvironmentRef) *string {
	if e.Name == "" {
		return nil
	}
	return &e.Name
}

func arrangementChanges(changes Changes, fact events.EnvironmentsArranged) {
	colors := map[string]string{}
	before := events.EnvironmentsArranged{To: fact.From}.Order()
	for _, e := range fact.From {
		colors[e.Environment.Name] = e.Color
	}
	for _, e := range fact.To {
		if name := e.Environment.Name; colors[name] != e.Color {
			changes.add("environments."+name+".color", colors[name], e.Color)
		}
	}
	if !slices.Equal(before, fact.Order()) {
		changes.add("environments.order", environmentNames(before), environmentNames(fact.Order()))
	}
}

func environmentNames(list []events.EnvironmentRef) []string {
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

func subscriptionChanges(changes Changes, from, to events.Subscription) {
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

func expiryOrNull(t *time.Time) any {
	if t == nil {
		return nil
	}
	return timeOrNull(*t)
}

// timeOrNull formats a time as the API does; nil for the zero time.
func timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
