package commands

import (
	"fmt"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

const (
	perTenant  = "tenant"
	perFlag    = "flag"
	perSegment = "segment"
	perRules   = "flag and environment"
)

// ListLimits lists the limits that commands enforce.
func ListLimits() []events.Limit {
	return []events.Limit{
		tenantLimit("flags", MaxFlags),
		tenantLimit("segments", MaxSegments),
		tenantLimit("projects", MaxProjects),
		tenantLimit("members, pending ones included", maxMembers),
		tenantLimit("environments", maxEnvironments, "environments"),
		{
			Group: events.TenantLimits, Name: "environments added, also those deleted since", Max: maxEnvironmentsDay,
			Unit: "a day", Per: perTenant, Nodes: events.AllNodes, Status: 429,
		},
		tenantLimit("OAuth clients", maxClients),
		tenantLimit("evaluation keys", maxEvaluationKeys),
		{
			Group: events.TenantLimits, Name: "origins", Fields: []string{"origins"}, Max: maxOrigins, Per: "evaluation key",
			Nodes: events.AllNodes, Status: 422,
		},
		tenantLimit("earlier keys or secrets of an evaluation key that are still valid", state.MaxPreviousSecrets),
		tenantLimit("earlier secrets of an OAuth client that are still valid", state.MaxPreviousSecrets),
		flagLimit("a flag with variations and the rules of all environments", MaxFlagBytes, events.UnitBytes, perFlag, 409),
		flagLimit("a value that is served", maxValueBytes, events.UnitBytes, perFlag, 409),
		flagLimit("variations", maxVariations, "", perFlag, 409),
		flagLimit("tags", maxTags, "", perFlag, 422),
		flagLimit("links", maxLinks, "", perFlag, 422, "links"),
		flagLimit("prerequisites", maxPrerequisites, "", perRules, 422, "prerequisites"),
		flagLimit("variations and values of a prerequisite", maxServedValues, "", perRules, 422, "serves"),
		flagLimit("all prerequisites", maxPrerequisiteBytes, events.UnitBytes, perRules, 422),
		flagLimit("segments that rules refer to", maxSegmentsUsed, "", "flag, and segment", 422),
		flagLimit("segments that refer to each other in a row", MaxSegmentChain, "", perTenant, 422),
		flagLimit("a member", state.MaxMember, events.UnitBytes, perSegment, 422),
		flagLimit("members", maxSegmentSize, "", perSegment, 409),
		flagLimit("all members", maxSegmentBytes, events.UnitBytes, perSegment, 409),
		flagLimit("rules", MaxRules, "", perRules, 422, "rules"),
		flagLimit("all rules", maxServed, events.UnitBytes, perRules, 422),
		flagLimit("conditions of a rule", maxConditions, "", perRules, 422, "conditions"),
		flagLimit("values of a condition", maxValues, "", perRules, 422, "values"),
		flagLimit("a regular expression", maxRegexp, events.UnitBytes, perRules, 422),
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

		events.FieldLimit(maxFlagKey, events.UnitCharacters, 422, "key", "example"),
		events.FieldLimit(maxEnvironmentName, events.UnitCharacters, 422, "environment"),
		events.FieldLimit(maxName, events.UnitCharacters, 422, "name", "displayName", "hint", "contactName"),
		events.FieldLimit(maxDescription, events.UnitCharacters, 422, "description"),
		events.FieldLimit(maxTag, events.UnitCharacters, 422, "tags"),
		events.FieldLimit(maxLinkURL, events.UnitCharacters, 422, "url"),
		events.FieldLimit(maxKeyPattern, events.UnitCharacters, 422, "pattern"),
		events.FieldLimit(MaxMemberChanges, "", 422, "add", "remove"),
		events.FieldLimit(maxAttribute, events.UnitCharacters, 422, "attribute", "bucketBy"),
		events.FieldLimit(int(events.MaxWeight/1000), "", 422, "weight"),
		events.FieldLimit(maxEmail, events.UnitBytes, 422, "email", "primaryEmail"),
		{
			Group: events.FieldLimits, Fields: []string{"password", "newPassword"}, Status: 422,
			Value: fmt.Sprintf("%d characters to %s", MinPassword, events.SizeText(MaxPassword)),
		},
	}
}

func tenantLimit(name string, most int, fields ...string) events.Limit {
	return events.Limit{
		Group: events.TenantLimits, Name: name, Fields: fields, Max: most, Per: perTenant, Nodes: events.AllNodes,
		Status: 409,
	}
}

func flagLimit(name string, most int, unit, per string, status int, fields ...string) events.Limit {
	return events.Limit{
		Group: events.TenantLimits, Name: name, Fields: fields, Max: most, Unit: unit, Per: per, Nodes: events.AllNodes,
		Status: status,
	}
}
