package commands

import (
	"fmt"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

const (
	characters = "characters"
	perTenant  = "tenant"
	perFlag    = "flag"
	perRules   = "flag and environment"
)

// ListLimits lists the limits that commands enforce.
func ListLimits() []events.Limit {
	return []events.Limit{
		tenantLimit("flags", MaxFlags),
		tenantLimit("projects", MaxProjects),
		tenantLimit("members, pending ones included", maxMembers),
		tenantLimit("environments", maxEnvironments),
		{
			Group: events.TenantLimits, Name: "environments added, also those deleted since", Max: maxEnvironmentsDay,
			Unit: "a day", Per: perTenant, Nodes: events.AllNodes, Status: 429,
		},
		tenantLimit("OAuth clients", maxClients),
		{
			Group: events.TenantLimits, Name: "earlier secrets that are still valid", Max: state.MaxPreviousSecrets,
			Per: "OAuth client", Nodes: events.AllNodes, Status: 409,
		},
		flagLimit("a flag with variations and the rules of all environments", maxFlagBytes, events.UnitBytes, perFlag, 409),
		flagLimit("a value that is served", maxValueBytes, events.UnitBytes, "value", 409),
		flagLimit("variations", maxVariations, "", perFlag, 409),
		flagLimit("tags", maxTags, "", perFlag, 422),
		flagLimit("links", maxLinks, "", perFlag, 422, "links"),
		flagLimit("rules", MaxRules, "", perRules, 422, "rules"),
		flagLimit("all rules", maxServed, events.UnitBytes, perRules, 422),
		flagLimit("conditions", maxConditions, "", "rule", 422, "conditions"),
		flagLimit("values", maxValues, "", "condition", 422, "values"),
		flagLimit("a regular expression", maxRegexp, events.UnitBytes, "value", 422),
		flagLimit("all regular expressions", maxRegexps,
			"instructions, "+events.CountText(rules.MaxRegexpCost)+" units to parse", perRules, 422),

		{
			Group: events.PersonLimits, Name: "tenants created and not deleted", Max: MaxCreated,
			Per: "person", Nodes: events.AllNodes, Status: 409,
		},
		{
			Group: events.PersonLimits, Name: "tenants created, also those deleted since", Max: MaxCreatedPerDay,
			Unit: "a day", Per: "person", Nodes: events.AllNodes, Status: 429,
		},
		{
			Group: events.PersonLimits, Name: "tenants that one sign-in joins", Max: maxJoins, Per: "person",
			Value:  fmt.Sprintf("%d, in %s", maxJoins, events.PeriodText(joinTime)),
			Beyond: "joined at the next sign-in",
		},

		{
			Group: events.ConcurrencyLimits, Name: "changes", Max: tenantCommands, Per: perTenant, Nodes: events.EachNode,
			Status: 429, Beyond: waitsFirst,
		},
		{
			Group: events.ConcurrencyLimits, Name: "changes of one flag, project, person or tenant", Max: 1, Per: "stream",
			Nodes: events.EachNode, Status: 429, Beyond: waitsFirst,
		},

		field(maxFlagKey, characters, "key", "example"),
		field(maxEnvironmentName, characters, "environment"),
		field(maxName, characters, "name", "displayName", "hint", "contactName"),
		field(maxDescription, characters, "description"),
		field(maxTag, characters, "tags"),
		field(maxLinkURL, characters, "url"),
		field(maxKeyPattern, characters, "pattern"),
		field(maxAttribute, characters, "attribute", "bucketBy"),
		field(int(events.MaxWeight/1000), "", "weight"),
		field(maxEmail, events.UnitBytes, "email", "primaryEmail"),
		{
			Group: events.FieldLimits, Fields: []string{"password", "newPassword"}, Status: 422,
			Value: fmt.Sprintf("%d characters to %s", MinPassword, events.SizeText(MaxPassword)),
		},
		field(maxNotificationTitle, characters, "title"),
		field(maxNotificationWord, characters, "type", "actionType", "referenceId", "deviceName"),
		field(maxNotificationBody, characters, "body"),
		field(maxNotificationIcon, characters, "icon"),
		field(maxNotificationData, events.UnitBytes, "data"),
		field(maxDeviceToken, characters, "deviceToken"),
		field(maxReturnURL, characters, "successUrl", "cancelUrl", "returnUrl"),
		field(maxPaymentID, characters, "productId", "customerId", "coupon"),
		field(maxPromoCode, characters, "promoCode"),
		field(maxReferral, characters, "referralId", "affiliate_referral"),
		field(maxAmount, "", "amount"),

		{
			Group: events.MemoryLimits, Name: "cached states that changes are decided from", Max: maxStates,
			Unit: events.UnitBytes, Nodes: events.EachNode, Beyond: "read from the event store",
		},
	}
}

// waitsFirst describes how long a change waits for others before it is refused.
var waitsFirst = "after a wait of " + events.PeriodText(writeTimeout)

func tenantLimit(name string, most int) events.Limit {
	return events.Limit{
		Group: events.TenantLimits, Name: name, Max: most, Per: perTenant, Nodes: events.AllNodes, Status: 409,
	}
}

func flagLimit(name string, most int, unit, per string, status int, fields ...string) events.Limit {
	return events.Limit{
		Group: events.TenantLimits, Name: name, Fields: fields, Max: most, Unit: unit, Per: per, Nodes: events.AllNodes,
		Status: status,
	}
}

func field(most int, unit string, fields ...string) events.Limit {
	return events.Limit{Group: events.FieldLimits, Fields: fields, Max: most, Unit: unit, Status: 422}
}
